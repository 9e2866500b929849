import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { expectProblem } from '../support/problem.js';
import { useCluster } from '../support/suite.js';

describe('problems (section 8)', () => {
  const cluster = useCluster({ mains: 1, workers: 1 });
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat();
  });

  it('404 not_found for a route that there is not', async () => {
    for (const path of ['/nothing/here', chat.path('/x/y/z/w')]) {
      expectProblem(await chat.http().get(path), 404, 'not_found');
    }
  });

  it('takes no unknown method for another one', async () => {
    const response = await chat.http().request(chat.path(), { method: 'PATCH', body: {} });
    expect(response.status).to.be.oneOf([404, 405, 501]);
    expect(response.headers['content-type']).to.match(/^application\/problem\+json/);
  });

  it('400 with a pointer to every mistake of a body', async () => {
    const path = `/projects/${chat.projectId}/agents/v2`;
    const config = { ...cluster.config(), instructions: 7, limits: { maxSteps: 'many' } };
    const problem = expectProblem(await chat.http().post(path, { name: 'x', config }), 400, 'invalid_request');
    const errors = JSON.stringify(problem.errors);
    expect(problem.errors).to.be.an('array');
    expect(errors).to.contain('/config/instructions').and.to.contain('/config/limits/maxSteps');
  });

  it('answers what HTTP itself cannot carry with a 4xx, and lives on', async () => {
    const odd = [
      chat.http().get(`${chat.path()}?limit=%E0%A4%A`),
      chat.http().get('/projects/%E0%A4%A/agents/v2'),
      chat.http().get(chat.path(`/${'a'.repeat(5_000)}/messages`)),
      chat.http().get('/me', { headers: { authorization: `Bearer ${'x'.repeat(10_000)}` } }),
      chat.post('{"message":'.repeat(5_000)),
      chat.post(`${'['.repeat(100_000)}${']'.repeat(100_000)}`),
      chat.post('{"__proto__": {"message": "x"}}'),
    ];
    for (const response of await Promise.all(odd)) expect(response.status, response.text).to.be.within(400, 499);
    await chat.http().expect(200, '/me');
  });

  it('answers what is no HTTP with a problem, too', async () => {
    const { hostname, port } = new URL(cluster.anonymous().baseUrl);
    const socket = connect(Number(port), hostname);
    socket.end('GET /me HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n');
    const response = await text(socket);
    expect(response)
      .to.match(/^HTTP\/1\.1 400 /)
      .and.contain('application/problem+json');
    expect(JSON.parse(response.split('\r\n\r\n')[1] ?? '')).to.include({ status: 400, code: 'invalid_request' });
  });

  it('sends security headers and no fingerprints', async () => {
    const { headers } = await chat.http().get('/me');
    expect(headers['x-content-type-options']).to.equal('nosniff');
    expect(headers).not.to.have.property('x-powered-by');
    expect(headers['cache-control'] ?? 'no-store').to.match(/no-store|no-cache|private/);
  });
});
