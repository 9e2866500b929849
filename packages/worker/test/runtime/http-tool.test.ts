import type { ServerResponse } from 'node:http';
import type { HttpTool } from '@turnkeep/shared/contract/agent';
import { expect } from 'chai';
import { createEgress } from '../../src/runtime/egress.js';
import { callHttpTool } from '../../src/runtime/http-tool.js';
import type { JsonObject } from '../../src/runtime/json.js';
import { useEgress, useNamelessEgress } from './speak.js';
import { freePort, useWireServer } from './wire-server.js';

describe('an HTTP tool', () => {
  const egress = useEgress();
  const nameless = useNamelessEgress();
  const server = useWireServer();
  const whole = { input: {}, executionId: 'e', toolCallId: 'c', abortSignal: new AbortController().signal };
  const call = (more: Partial<HttpTool> & { input?: JsonObject; abortSignal?: AbortSignal } = {}) => {
    const { input = {}, abortSignal = new AbortController().signal, ...tool } = more;
    return callHttpTool({
      tool: {
        type: 'http',
        name: 'tool',
        description: '',
        inputSchema: { type: 'object' },
        method: 'POST',
        url: `${server.url}/tool`,
        requireApproval: false,
        timeoutMs: 10_000,
        ...tool,
      },
      input,
      executionId: 'execution-1',
      toolCallId: 'call_1',
      egress,
      abortSignal,
    });
  };
  const answers = (type: string | undefined, body: string | Buffer, status = 200) => {
    server.answer = (_, response) => {
      response.writeHead(status, type === undefined ? {} : { 'content-type': type });
      response.end(body);
    };
  };

  it('gets the arguments as its JSON body, and says who calls', async () => {
    answers('application/json', '{"sun":true}');
    const input = { city: 'Zürich', deep: { list: [1, null] } };
    expect(await call({ input })).to.deep.equal({ output: { sun: true }, isError: false });
    expect(server.last).to.include({ method: 'POST', url: '/tool', body: JSON.stringify(input) });
    expect(server.last.headers).to.include({
      'content-type': 'application/json',
      'x-turnkeep-execution-id': 'execution-1',
      'x-turnkeep-tool-call-id': 'call_1',
      'idempotency-key': 'call_1',
    });
  });

  for (const method of ['PUT', 'PATCH', 'DELETE'] as const) {
    it(`gets them so for ${method} too`, async () => {
      answers('application/json', 'null');
      expect(await call({ method, input: { a: 1 } })).to.deep.equal({ output: null, isError: false });
      expect(server.last).to.include({ method, body: '{"a":1}' });
    });
  }

  it('gets them as the query string for GET, nested values as JSON', async () => {
    answers('application/json', '1');
    const input = { city: 'A & B=Ü', n: 2, yes: true, none: null, list: [1, 'x'], at: { lat: 1.5 } };
    await call({ method: 'GET', url: `${server.url}/tool?unit=C&city=old`, input });
    const { searchParams } = new URL(server.last.url, server.url);
    expect(Object.fromEntries(searchParams)).to.deep.equal({
      unit: 'C',
      city: 'A & B=Ü',
      n: '2',
      yes: 'true',
      list: '[1,"x"]',
      at: '{"lat":1.5}',
    });
    expect(server.last).to.include({ method: 'GET', body: '' });
  });

  const bodies: [string, string | undefined, string | Buffer, unknown][] = [
    ['JSON', 'application/json; charset=utf-8', '[1]', [1]],
    ['JSON of a type of its own', 'application/vnd.api+json', '{"a":"ü"}', { a: 'ü' }],
    ['JSON that is none', 'application/json', '{"a":', '{"a":'],
    [
      'JSON that nests too deep',
      'application/json',
      '['.repeat(100_000) + ']'.repeat(100_000),
      '['.repeat(100_000) + ']'.repeat(100_000),
    ],
    ['JSON with what Postgres cannot store', 'application/json', '{"a\\u0000":"\\ud83d"}', { 'a\uFFFD': '\uFFFD' }],
    ['a key __proto__', 'application/json', '{"__proto__":{"a":1}}', JSON.parse('{"__proto__":{"a":1}}')],
    ['text', 'text/plain', 'a\0b 😀', 'a\uFFFDb 😀'],
    ['text that looks like JSON', 'text/plain', '12', '12'],
    ['text of another charset', 'text/html; charset="ISO-8859-1"', Buffer.from('Stra\xdfe', 'latin1'), 'Straße'],
    ['text of a charset that nobody knows', 'text/plain; charset=klingon', 'ü', 'ü'],
    ['text that is not valid', 'text/plain', Buffer.from([0x61, 0xff]), 'a\uFFFD'],
    ['text with a byte order mark', 'text/plain', '\uFEFFx', 'x'],
    ['XML', 'application/xml', '<a/>', '<a/>'],
    ['a file', 'image/png', Buffer.from([1, 2, 3]), '[A file of type image/png with 3 bytes; not shown.]'],
    ['JSON without a type', undefined, '{"a":1}', { a: 1 }],
    ['bytes without a type', undefined, Buffer.from([0xff, 0xfe]), '[A file of type unknown with 2 bytes; not shown.]'],
    ['nothing', 'application/json', '', ''],
  ];
  for (const [what, type, body, output] of bodies) {
    it(`that answers ${what}`, async () => {
      answers(type, body);
      expect(await call()).to.deep.equal({ output, isError: false });
    });
  }

  it('that answers 204 has an empty output', async () => {
    answers(undefined, '', 204);
    expect(await call()).to.deep.equal({ output: '', isError: false });
  });

  it('that answers outside 2xx gives status and body as an error', async () => {
    answers('application/json', '{"why":"no"}', 422);
    expect(await call()).to.deep.equal({ output: { status: 422, body: { why: 'no' } }, isError: true });
    answers('text/plain', 'boom', 500);
    expect(await call()).to.deep.equal({ output: { status: 500, body: 'boom' }, isError: true });
    answers(undefined, '', 304);
    expect(await call()).to.deep.equal({ output: { status: 304, body: '' }, isError: true });
  });

  it('keeps characters whole that TCP chunks split', async () => {
    server.answer = async (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      for (const byte of Buffer.from('{"a":"漢😀"}')) await written(response, Buffer.from([byte]));
      response.end();
    };
    expect(await call()).to.deep.equal({ output: { a: '漢😀' }, isError: false });
  });

  it('that answers 20 MB gives all of it', async () => {
    const text = 'x'.repeat(20 * 1024 * 1024);
    answers('application/json', JSON.stringify({ text }));
    const { output, isError } = await call();
    expect(isError).to.equal(false);
    expect((output as { text: string }).text.length).to.equal(text.length);
  });

  it('that answers more than 32 MiB is an error, whether it says so beforehand or not', async () => {
    const chunk = Buffer.alloc(1024 * 1024, 'x');
    for (const headers of [{}, { 'content-length': String(40 * chunk.length) }]) {
      server.answer = async (_, response) => {
        response.writeHead(200, { 'content-type': 'text/plain', ...headers });
        for (let index = 0; index < 40 && !response.destroyed; index += 1) await written(response, chunk);
        response.end();
      };
      const { output, isError } = await call();
      expect(isError).to.equal(true);
      expect(output).to.contain('larger than 32 MiB');
      expect(await server.last.over).to.equal(false);
    }
  });

  it('that is silent, or stops in the middle of its body, fails after timeoutMs and is let go', async () => {
    for (const begin of ['', 'half an ans']) {
      server.answer = (_, response) => {
        response.writeHead(200, { 'content-type': 'text/plain' });
        if (begin !== '') response.write(begin);
      };
      const result = await call({ timeoutMs: 150 });
      expect(result).to.deep.equal({ output: 'The tool did not answer within 150 ms.', isError: true });
      expect(await server.last.over).to.equal(false);
    }
  });

  it('that hangs up is an error in a plain sentence', async () => {
    server.answer = (_, response) => void response.destroy();
    expect(await call())
      .to.deep.include({ isError: true })
      .and.property('output')
      .contain('it may have run');
  });

  it('that is not there is an error which shows no address', async () => {
    const { output, isError } = await call({ url: `http://127.0.0.1:${await freePort()}/` });
    expect(isError).to.equal(true);
    expect(output).to.contain('refuses connections').and.not.contain('127');
    const lost = await callHttpTool({ ...whole, tool: toolAt('http://no-such-host.invalid/'), egress: nameless });
    expect(lost).to.deep.equal({ output: "The tool's host name cannot be resolved.", isError: true });
  });

  it('in a private network is not called', async () => {
    const closed = createEgress({ allowPrivateNetwork: false });
    const before = server.requests.length;
    const result = await callHttpTool({ ...whole, tool: toolAt(server.url), egress: closed });
    await closed.close();
    expect(result.isError).to.equal(true);
    expect(result.output).to.contain('was not called').and.contain('ALLOW_PRIVATE_NETWORK');
    expect(server.requests).to.have.length(before);
  });

  it('is let go at once by an abort, with the signal’s reason, in silence and in the middle of a body', async () => {
    for (const begin of ['', 'half']) {
      const controller = new AbortController();
      const reason = new DOMException('stopped by the user', 'AbortError');
      const arrived = new Promise<void>((resolve) => {
        server.answer = (_, response) => {
          if (begin !== '') response.write(begin);
          resolve();
        };
      });
      const running = call({ abortSignal: controller.signal }).catch((error: unknown) => error);
      await arrived;
      controller.abort(reason);
      expect(await running).to.equal(reason);
      expect(await server.last.over).to.equal(false);
    }
  });

  it('is not called where the signal is already aborted', async () => {
    const before = server.requests.length;
    const reason = new DOMException('stopped', 'AbortError');
    expect(await call({ abortSignal: AbortSignal.abort(reason) }).catch((error: unknown) => error)).to.equal(reason);
    expect(server.requests).to.have.length(before);
  });
});

function toolAt(url: string): HttpTool {
  const inputSchema = { type: 'object' };
  return {
    type: 'http',
    name: 't',
    description: '',
    inputSchema,
    method: 'POST',
    url,
    requireApproval: false,
    timeoutMs: 5000,
  };
}

/** Resolves once the bytes have been handed to the socket, or it is gone. */
function written(response: ServerResponse, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => response.write(bytes, () => resolve()));
}
