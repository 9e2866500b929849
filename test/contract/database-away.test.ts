import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { eventually } from '../support/deadline.js';
import { unique } from '../support/environment.js';
import { expectProblem } from '../support/problem.js';
import { useCluster } from '../support/suite.js';
import { TcpProxy } from '../support/tcp-proxy.js';

describe('Postgres goes away (section 8)', function () {
  this.timeout(60_000);
  const cluster = useCluster({ mains: 1, workers: 1 });
  let proxy: TcpProxy;
  let chat: Chat;
  before(async () => {
    proxy = await new TcpProxy(cluster.db.url).start();
    cluster.defer(() => proxy.stop());
    await cluster.startMain({ DATABASE_URL: proxy.url });
    await cluster.startWorker({ DATABASE_URL: proxy.url });
    chat = await cluster.newChat();
  });
  afterEach(() => proxy.restore());
  const AWAY = 1;

  it('503 unavailable with Retry-After for every request, and nothing of the inside in it', async () => {
    proxy.cut();
    const requests = [
      chat.post({ message: 'x' }, { main: AWAY }),
      chat.http(AWAY).get('/me'),
      chat.http(AWAY).get(chat.path()),
      chat.http(AWAY).get('/push'),
    ];
    for (const response of await Promise.all(requests)) {
      expectProblem(response, 503, 'unavailable');
      expect(response.headers['retry-after']).to.match(/^\d+$/);
      expect(response.text).not.to.match(/ECONN|127\.0\.0\.1|turnkeep_test/);
    }
    const ready = await cluster.anonymous(AWAY).get('/readyz');
    expect(ready.status).to.equal(503);
    expect((await cluster.anonymous(AWAY).get('/healthz')).status, 'it need not be restarted').to.equal(200);
  });

  it('serves again by itself when it is back', async () => {
    proxy.cut();
    expectProblem(await chat.http(AWAY).get('/me'), 503, 'unavailable');
    proxy.restore();
    await eventually('the main does not come back', async () => {
      return (await cluster.anonymous(AWAY).get('/readyz')).status === 200;
    });
    expect((await chat.turn('Back?', { main: AWAY })).status).to.equal('success');
  });

  it('a short absence loses nothing of a turn’s stream that goes on meanwhile', async () => {
    const marker = unique('through');
    const held = cluster.model.hold(marker, 'before', ' after');
    const stream = await chat.send(marker, { main: AWAY });
    await held.reached();
    await stream.until('text-delta');
    proxy.cut();
    held.open();
    await stream.until((event) => event.data.delta === ' after');
    proxy.restore();
    const events = await stream.all();
    expect(events.at(-1)?.data.status).to.equal('success');
    const { messages } = await chat.transcript(String(events[0]?.data.sessionId));
    expect(messages[1]?.content).to.deep.equal([{ type: 'text', text: 'before after' }]);
  });
});
