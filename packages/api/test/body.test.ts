import { request as nodeRequest } from 'node:http';
import { connect } from 'node:net';
import { createLog } from '@turnkeep/shared/log';
import { expect } from 'chai';
import Koa from 'koa';
import { HttpClient } from '../../../test/support/http.js';
import { expectProblem } from '../../../test/support/problem.js';
import { readJson } from '../src/http/body.js';
import type { State } from '../src/http/context.js';
import { problems } from '../src/http/problems.js';
import { type Listening, listen } from '../src/http/server.js';

const LIMIT = 1_000;

describe('reading a JSON body (section 8)', () => {
  let server: Listening;
  let http: HttpClient;

  before(async () => {
    const app = new Koa<State>();
    app.silent = true;
    app.use(problems(createLog('main', 'silent')));
    app.use(async (ctx) => {
      ctx.body = { read: await readJson(ctx, LIMIT) };
    });
    server = await listen(app, '127.0.0.1', 0);
    http = new HttpClient(`http://127.0.0.1:${server.port}`, { 'content-type': 'application/json' });
  });
  after(async () => {
    server.stopListening();
    await server.closed(1_000);
  });

  const post = (body: string | Buffer, headers: Record<string, string | undefined> = {}) =>
    http.post('/', body, { headers });

  it('takes application/json, with charset utf-8 or none', async () => {
    for (const type of ['application/json', 'application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"'])
      expect((await post('{"a":"é"}', { 'content-type': type })).json(), type).to.deep.equal({ read: { a: 'é' } });
  });

  it('415 for another type, charset or encoding', async () => {
    for (const type of [undefined, 'text/plain', 'application/json; charset=latin1', 'application/x-json'])
      expectProblem(await post('{}', { 'content-type': type }), 415, 'unsupported_media_type');
    expectProblem(await post('{}', { 'content-encoding': 'gzip' }), 415, 'unsupported_media_type');
  });

  it('400 for what is no JSON and for bytes that are no UTF-8', async () => {
    for (const body of [
      '',
      '{',
      '{"a":1,}',
      'NaN',
      Buffer.from([0x22, 0xc3, 0x28, 0x22]),
      Buffer.from([0x22, 0xff, 0x22]),
    ])
      expectProblem(await post(body), 400, 'invalid_request');
  });

  it('keeps a key __proto__ a key', async () => {
    const { text } = await post('{"__proto__":{"a":1},"__proto__":{"b":2}}');
    expect(text).to.equal('{"read":{"__proto__":{"b":2}}}');
  });

  it('takes a body of just the limit', async () => {
    expect((await post(`"${'x'.repeat(LIMIT - 2)}"`)).status).to.equal(200);
  });

  it('413 for a longer one, at once where Content-Length says so', async () => {
    expectProblem(await post(`"${'x'.repeat(LIMIT - 1)}"`), 413, 'payload_too_large');
    const answer = await exchange('Content-Length: 100000000', '');
    expect(answer).to.match(/^HTTP\/1.1 413 /);
  });

  it('413 for a longer one without a length, and the connection serves the next request', async () => {
    const chunk = 'x'.repeat(LIMIT);
    const answer = await exchange(
      'Transfer-Encoding: chunked',
      `3e8\r\n${chunk}\r\n3e8\r\n${chunk}\r\n0\r\n\r\n` +
        'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}',
    );
    expect(answer).to.match(/^HTTP\/1.1 413 /);
    expect(answer).to.match(/HTTP\/1.1 200 OK[\s\S]*\{"read":\{\}\}$/);
  });

  it('lets a client go that breaks off while it sends, and serves the next', async () => {
    const broken = nodeRequest(`http://127.0.0.1:${server.port}/`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-length': '100' },
    });
    const gone = new Promise((resolve) => broken.once('close', resolve));
    broken.on('error', () => {});
    broken.write('{"a":', () => broken.destroy());
    await gone;
    expect((await post('{}')).status).to.equal(200);
  });

  /** Sends bytes by hand and answers with all that came back until the end, or the first answer where nothing more is sent. */
  function exchange(header: string, rest: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect(server.port, '127.0.0.1');
      let seen = '';
      socket.on('error', reject);
      socket.on('data', (bytes) => {
        seen += bytes;
        if (rest === '' && seen.includes('\r\n\r\n')) socket.destroy();
      });
      socket.on('close', () => resolve(seen));
      socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${header}\r\n\r\n${rest}`);
    });
  }
});
