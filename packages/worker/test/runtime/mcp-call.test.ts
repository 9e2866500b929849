import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { createEgress } from '../../src/runtime/egress.js';
import type { JsonObject } from '../../src/runtime/json.js';
import type { McpClients, McpToolOffer } from '../../src/runtime/mcp.js';
import { json, type Message, never, refuse, result, stream, text, tool, useMcp } from './mcp-wire-server.js';
import { useEgress } from './speak.js';
import { freePort } from './wire-server.js';

describe("a call of an MCP server's tool", () => {
  const { wire, server, clients, entry, offer } = useMcp(useEgress());
  let ids = 0;
  const call = (
    own: McpClients,
    more: { to?: McpToolOffer; input?: JsonObject; execution?: string; signal?: AbortSignal } = {},
  ) => {
    ids += 1;
    const { to = offer(), input = {}, execution = 'e1', signal = never() } = more;
    return own.call(to, input, { executionId: execution, toolCallId: `call_${ids}`, abortSignal: signal });
  };
  const calls = () => server.of('tools/call');
  const answers = (value: object) => {
    server.handlers['tools/call'] = (message, response) => result(response, message, value);
  };

  it('takes the arguments, and says who calls on its own request alone', async () => {
    const input = { city: 'Zürich', deep: { list: [1, null] } };
    expect(await call(clients(), { input })).to.deep.equal({ output: 'acted', isError: false });
    const [{ message, request }] = calls() as [{ message: Message; request: (typeof wire.requests)[0] }];
    expect(message.params).to.deep.equal({ name: 'act', arguments: input });
    expect(request.headers).to.include({
      'x-turnkeep-execution-id': 'e1',
      'x-turnkeep-tool-call-id': `call_${ids}`,
      'idempotency-key': `call_${ids}`,
    });
    for (const { headers, body } of wire.requests.filter(({ body }) => !body.includes('tools/call'))) {
      expect(headers, body).to.not.have.any.keys('x-turnkeep-execution-id', 'idempotency-key');
    }
  });

  const image = { type: 'image', mimeType: 'image/png', data: 'AQID' };
  const link = { type: 'resource_link', uri: 'file:///a', name: 'a' };
  const outcomes: [string, object, unknown, boolean?][] = [
    ['text', text('a', 'b'), 'a\nb'],
    ['text that looks like JSON', text('{"a":1}'), '{"a":1}'],
    ['nothing', { content: [] }, ''],
    ['structured content', { ...text('{"a":1}'), structuredContent: { a: [1] } }, { a: [1] }],
    ['structured content alone', { structuredContent: { a: 1 } }, { a: 1 }],
    ['an error', { ...text('no'), isError: true }, 'no', true],
    ['an image', { content: [image] }, '[A file of type image/png with 3 bytes; not shown.]'],
    [
      'sound',
      { content: [{ ...image, type: 'audio', mimeType: 'audio/wav' }] },
      '[A file of type audio/wav with 3 bytes; not shown.]',
    ],
    [
      'a file',
      { content: [{ type: 'resource', resource: { uri: 'a:b', blob: 'AQIDBA==' } }] },
      '[A file of type unknown with 4 bytes; not shown.]',
    ],
    ['text and a link', { content: [{ type: 'text', text: 'see' }, link] }, ['see', link]],
    [
      'what Postgres cannot store',
      { structuredContent: { 'a\0': '\ud83d', b: '😀' } },
      { 'a\uFFFD': '\uFFFD', b: '😀' },
    ],
    ['the result of an old server', { toolResult: 7 }, 7],
  ];
  for (const [what, value, output, isError = false] of outcomes) {
    it(`that answers ${what}`, async () => {
      answers(value);
      expect(await call(clients())).to.deep.equal({ output, isError });
    });
  }

  it('that answers JSON which nests too deep is an error', async () => {
    server.handlers['tools/call'] = (message, response) => {
      const deep = '['.repeat(600) + ']'.repeat(600);
      json(response, `{"jsonrpc":"2.0","id":${message.id},"result":{"content":[],"structuredContent":${deep}}}`);
    };
    expect(await call(clients()))
      .to.deep.include({ isError: true })
      .and.property('output')
      .contain('too deep');
  });

  it('that the server refuses says so in its words', async () => {
    server.handlers['tools/call'] = (message, response) => refuse(response, message, -32602, 'No such \ud83d tool');
    expect(await call(clients())).to.deep.equal({ output: 'No such \uFFFD tool', isError: true });
  });

  it('hears an event stream with notifications, and answers a ping without the headers of the call', async () => {
    const own = clients();
    server.handlers['tools/call'] = async (message, response) => {
      const ponged = new Promise<void>((resolve) => {
        server.handlers.undefined = (pong, answer) => {
          expect(pong).to.deep.include({ id: 'p', result: {} });
          answer.writeHead(202).end();
          resolve();
        };
      });
      const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { progress: 1, progressToken: 1 } };
      stream(response, progress, { jsonrpc: '2.0', id: 'p', method: 'ping' });
      await ponged;
      response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id: message.id, result: text('late') })}\n\n`);
    };
    expect(await call(own)).to.deep.equal({ output: 'late', isError: false });
    expect(server.seen.at(-1)?.request.headers).to.not.have.any.keys('idempotency-key', 'x-turnkeep-tool-call-id');
    expect(wire.requests.filter(({ method }) => method === 'GET')).to.deep.equal([]);
  });

  it('shares a session with the calls of its execution, and with no other', async () => {
    const own = clients();
    await Promise.all([call(own), call(own), call(own, { execution: 'e2' })]);
    await call(own);
    const sessions = (execution: string) =>
      calls()
        .filter(({ request }) => request.headers['x-turnkeep-execution-id'] === execution)
        .map(({ request }) => request.headers['mcp-session-id']);
    expect(sessions('e1')).to.have.length(3);
    expect(new Set(sessions('e1')).size).to.equal(1);
    expect(new Set([...sessions('e1'), ...sessions('e2')]).size).to.equal(2);
    expect(server.of('initialize')).to.have.length(2);
    await own.close();
    expect(server.ended).to.have.members([...new Set([...sessions('e1'), ...sessions('e2')])]);
  });

  it('begins a session anew where the last one was idle for too long', async () => {
    const own = clients({ idleMs: 1 });
    const ended = new Promise<void>((resolve) => {
      const usual = wire.answer;
      wire.answer = async (request, response) => {
        await usual(request, response);
        if (request.method === 'DELETE') resolve();
      };
    });
    await call(own);
    await ended;
    await call(own);
    expect(server.of('initialize')).to.have.length(2);
  });

  it('is spared the question for versions that the listing has answered', async () => {
    const own = clients();
    await own.list([entry()], never());
    await call(own);
    expect(server.of('server/discover')).to.have.length(1);
  });

  it('is sent once and may have run where the connection breaks, whatever of the answer came', async () => {
    const half = 'data: {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"te';
    const breaks: Record<string, (response: ServerResponse) => void> = {
      'before an answer': (response) => void response.destroy(),
      'in silence': (response) => {
        stream(response);
        response.end();
      },
      'in the middle': (response) => {
        stream(response);
        response.write(half, () => response.destroy());
      },
      'in a message that is never whole': (response) => {
        stream(response);
        response.end(half);
      },
      'with HTTP 500': (response) => void response.writeHead(500).end(),
      'with HTTP 503 and a JSON-RPC error': (response) => json(response, 'Try again', 503),
    };
    for (const [where, happens] of Object.entries(breaks)) {
      server.reset();
      const own = clients();
      server.handlers['tools/call'] = (_, response) => happens(response);
      const { output, isError } = await call(own);
      expect(isError, where).to.equal(true);
      expect(output, where)
        .to.match(/^The server wire gave no result: .*\. The tool may have run\.$/)
        .and.not.contain('127.0');
      expect(calls(), where).to.have.length(1);
      server.handlers = {};
      expect(await call(own), `${where}: the next call`).to.deep.equal({ output: 'acted', isError: false });
      expect(server.of('initialize'), where).to.have.length(2);
    }
  });

  it('did not run where the server has lost the session, and the next call has a new one', async () => {
    for (const status of [404, 400]) {
      server.reset();
      const own = clients();
      await call(own);
      server.handlers['tools/call'] = (message, response) =>
        refuse(response, message, -32001, 'Session not found', status);
      const { output, isError } = await call(own);
      expect(isError).to.equal(true);
      expect(output).to.contain('did not run; it can be called again');
      expect(calls(), 'sent once').to.have.length(2);
      server.handlers = {};
      expect(await call(own)).to.deep.equal({ output: 'acted', isError: false });
      expect(server.of('initialize')).to.have.length(2);
    }
  });

  it('did not run where the server is not there', async () => {
    const to = { ...offer(), server: entry({ url: `http://127.0.0.1:${await freePort()}/mcp` }) };
    const { output, isError } = await call(clients(), { to });
    expect(isError).to.equal(true);
    expect(output).to.contain('refuses connections').and.contain('did not run').and.not.contain('127');
  });

  it('did not run where no session could begin', async () => {
    const begins: Record<string, (message: Message, response: ServerResponse) => void> = {
      'HTTP status 500': (_, response) => void response.writeHead(500).end(),
      'did not answer in time': () => {},
      'it said: Too busy': (message, response) => refuse(response, message, -32000, 'Too busy'),
    };
    for (const [why, begin] of Object.entries(begins)) {
      server.handlers.initialize = begin;
      const { output, isError } = await call(clients({ listTimeoutMs: 150 }));
      expect(isError).to.equal(true);
      expect(output).to.contain(why).and.contain('The tool did not run.');
      expect(calls()).to.deep.equal([]);
    }
  });

  it('is not made into a private network', async () => {
    const closed = createEgress({ allowPrivateNetwork: false });
    const { output, isError } = await call(clients({ fetch: closed.fetch }));
    await closed.close();
    expect(isError).to.equal(true);
    expect(output).to.contain('ALLOW_PRIVATE_NETWORK').and.contain('did not run');
    expect(wire.requests).to.have.length(0);
  });

  it('fails after its time, and the server is told', async () => {
    const told = whenCancelled();
    server.handlers['tools/call'] = (_, response) => stream(response);
    const { output, isError } = await call(clients({ callTimeoutMs: 150 }));
    expect(isError).to.equal(true);
    expect(output).to.contain('did not answer in time').and.contain('may have run');
    expect(await calls()[0]?.request.over).to.equal(false);
    expect((await told).params.requestId).to.equal(calls()[0]?.message.id);
  });

  it('is let go at once by an abort, with its reason, and the server is told', async () => {
    for (const begin of [true, false]) {
      server.reset();
      const own = clients();
      const told = whenCancelled();
      const controller = new AbortController();
      const reason = new DOMException('stopped by the user', 'AbortError');
      const arrived = new Promise<void>((resolve) => {
        server.handlers['tools/call'] = (_, response) => {
          if (begin) stream(response);
          resolve();
        };
      });
      const running = call(own, { signal: controller.signal }).catch((error: unknown) => error);
      await arrived;
      controller.abort(reason);
      expect(await running).to.equal(reason);
      expect(await calls()[0]?.request.over).to.equal(false);
      expect((await told).params.requestId).to.equal(calls()[0]?.message.id);
    }
  });

  it('that is aborted while the session begins is never sent', async () => {
    const controller = new AbortController();
    const reason = new DOMException('stopped by the user', 'AbortError');
    const initialize = new Promise<() => void>((resolve) => {
      server.handlers.initialize = (message, response) => {
        delete server.handlers.initialize;
        resolve(() => void server.answerUsually(message, response));
      };
    });
    const own = clients();
    const running = call(own, { signal: controller.signal }).catch((error: unknown) => error);
    const goOn = await initialize;
    controller.abort(reason);
    expect(await running).to.equal(reason);
    goOn();
    expect(await call(own), 'another call of the execution').to.deep.equal({ output: 'acted', isError: false });
    expect(calls()).to.have.length(1);
    expect(await call(own, { signal: AbortSignal.abort(reason) }).catch((error: unknown) => error)).to.equal(reason);
    expect(calls()).to.have.length(1);
  });

  it('that answers more than 32 MiB is an error, as JSON and as a stream', async () => {
    const chunk = Buffer.alloc(1024 * 1024, 'x');
    for (const type of ['application/json', 'text/event-stream']) {
      server.reset();
      server.handlers['tools/call'] = async (_, response) => {
        response.writeHead(200, { 'content-type': type });
        response.write(type === 'application/json' ? '{"result":"' : 'data: {"result":"');
        for (let index = 0; index < 40 && !response.destroyed; index += 1) {
          await new Promise((resolve) => response.write(chunk, resolve));
        }
        response.end();
      };
      const { output, isError } = await call(clients());
      expect(isError, type).to.equal(true);
      expect(output, type).to.contain('too large');
      expect(await calls()[0]?.request.over, type).to.equal(false);
    }
  });

  it('leaves the other calls of its execution alone when it fails', async () => {
    const own = clients();
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      server.handlers['tools/call'] = (message, response) => {
        if (message.params.name === 'break') return void response.destroy();
        release = () => result(response, message, text('slow, but there'));
        resolve();
      };
    });
    const slow = call(own, { to: offer('slow') });
    await held;
    expect((await call(own, { to: offer('break') })).isError).to.equal(true);
    release();
    expect(await slow).to.deep.equal({ output: 'slow, but there', isError: false });
  });

  describe('by the protocol of 2026', () => {
    beforeEach(() => {
      server.handlers['server/discover'] = (message, response) =>
        result(response, message, {
          resultType: 'complete',
          supportedVersions: ['2026-07-28'],
          capabilities: { tools: {} },
        });
      server.handlers['tools/list'] = (message, response) =>
        result(response, message, { resultType: 'complete', tools: [tool('act')] });
    });

    it('needs no session', async () => {
      answers({ resultType: 'complete', ...text('modern') });
      const own = clients();
      const { tools } = await own.list([entry()], never());
      expect(await call(own, { to: tools[0]! })).to.deep.equal({ output: 'modern', isError: false });
      expect(server.of('initialize')).to.deep.equal([]);
      expect(calls()[0]?.request.headers).to.include({ 'idempotency-key': `call_${ids}`, 'mcp-name': 'act' });
    });

    it('sends a schema’s arguments as the headers that it asks for', async () => {
      answers({ resultType: 'complete', ...text('modern') });
      const properties = { region: { type: 'string', 'x-mcp-header': 'Region' } };
      const to = { ...offer(), inputSchema: { type: 'object', properties } };
      await call(clients(), { to, input: { region: 'eu' } });
      expect(calls()[0]?.request.headers).to.include({ 'mcp-param-region': 'eu' });
    });

    it('says what broke', async () => {
      server.handlers['tools/call'] = (_, response) => void response.destroy();
      expect((await call(clients())).output)
        .to.contain('the connection broke')
        .and.contain('may have run');
      expect(calls()).to.have.length(1);
    });

    it('is not sent again where the server asks for more', async () => {
      answers({ resultType: 'input_required', requestState: 'again' });
      const { output, isError } = await call(clients());
      expect(isError).to.equal(true);
      expect(output).to.contain('wants more input');
      expect(calls()).to.have.length(1);
    });
  });

  function whenCancelled(): Promise<Message> {
    return new Promise((resolve) => {
      server.handlers['notifications/cancelled'] = (message, response, request) => {
        response.writeHead(202).end();
        expect(request.headers).to.include.keys('mcp-session-id').and.not.include.keys('idempotency-key');
        resolve(message);
      };
    });
  }
});
