import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'chai';
import { type Cluster, startCluster } from '../support/cluster.js';
import { within } from '../support/deadline.js';
import { unique } from '../support/environment.js';
import { never } from '../support/model-script.js';
import type { ProductProcess } from '../support/processes.js';

describe('graceful stop (section 9)', function () {
  this.timeout(60_000);
  let cluster: Cluster;
  beforeEach(async () => {
    cluster = await startCluster({ mains: 1, workers: 1, env: { SHUTDOWN_GRACE_MS: '20000' } });
  });
  afterEach(() => cluster.stop());
  const only = (list: readonly ProductProcess[]) => list[0] as ProductProcess;

  it('an idle process exits 0 at once', async () => {
    await Promise.all([only(cluster.mains).stop(5_000), only(cluster.workers).stop(5_000)]);
  });

  it('a worker finishes its running turn, takes no new one, and exits 0', async () => {
    const chat = await cluster.newChat();
    const marker = unique('finishing');
    const held = cluster.model.hold(marker, 'going', ' gone');
    const stream = await chat.send(marker);
    await held.reached();
    const worker = only(cluster.workers);
    worker.signal('SIGTERM');
    const late = await chat.send('who takes me?');
    await late.until('message-queued');
    held.open();
    const events = await stream.all();
    expect(events.at(-1)?.data).to.include({ type: 'done', status: 'success' });
    expect((await worker.exit).code).to.equal(0);
    expect(cluster.model.requestsFor('who takes me?')).to.have.length(0);
    await cluster.startWorker();
    expect((await late.all()).at(-1)?.data).to.include({ status: 'success' });
  });

  it('a main ends no stream of a turn that finishes within the grace, and takes no new request', async () => {
    const chat = await cluster.newChat();
    const marker = unique('streaming');
    const held = cluster.model.hold(marker, 'going', ' gone');
    const stream = await chat.send(marker);
    await held.reached();
    await stream.until('text-delta');
    const main = only(cluster.mains);
    main.signal('SIGTERM');
    await within(refusesConnections(main), () => 'the main still takes connections');
    held.open();
    const events = await stream.all();
    expect(events.at(-1)?.data).to.include({ type: 'done', status: 'success' });
    expect((await main.exit).code).to.equal(0);
  });

  it('a main does not wait for a connection that was opened ahead of need', async () => {
    const main = only(cluster.mains);
    const { hostname, port } = new URL(main.baseUrl);
    const socket = connect(Number(port), hostname);
    const closed = once(socket, 'close');
    await once(socket, 'connect');
    // The main has seen the connection once it has answered what came after it.
    await cluster.anonymous().expect(200, '/healthz');
    await main.stop(3_000);
    await closed;
  });

  it('a main ends the streams that wait, cleanly, and loses nothing', async () => {
    await only(cluster.workers).stop();
    const chat = await cluster.newChat();
    const stream = await chat.send('patience');
    const { sessionId } = (await stream.until('message-queued')).data;
    const push = await chat.http().openSse('/push');
    await push.until('connected');
    await only(cluster.mains).stop(10_000);
    expect(await stream.end()).to.equal('clean');
    expect(await push.end()).to.equal('clean');
    expect(stream.seen.map((event) => event.data.type)).to.deep.equal(['message-queued']);
    await cluster.startMain();
    await cluster.startWorker();
    const rows = await chat
      .as({ ...chat.user, on: () => cluster.bearer(chat.user.token, 1) })
      .settled(String(sessionId));
    expect(rows.map((row) => row.status)).to.deep.equal(['success']);
  });

  it('a second SIGTERM interrupts at once; the turn is recorded as interrupted', async () => {
    const chat = await cluster.newChat();
    const marker = unique('endless');
    cluster.model.on(marker, never());
    const stream = await chat.send(marker);
    await cluster.model.request(marker);
    const worker = only(cluster.workers);
    worker.signal('SIGTERM');
    await worker.logged((line) => /stop|shut|term/i.test(line.msg ?? ''), 'that it stops');
    worker.signal('SIGTERM');
    expect((await within(worker.exit, () => 'the worker goes on', 5_000)).code).to.equal(0);
    await cluster.startWorker();
    const events = await stream.all();
    expect(events.at(-1)?.data).to.include({ type: 'done', status: 'interrupted' });
    expect(events.at(-2)?.data).to.include({ type: 'error', code: 'interrupted' });
    expect(cluster.model.requestsFor(marker), 'nothing is replayed').to.have.length(1);
  });

  it('when the grace is over, a turn is interrupted, and the next message starts elsewhere', async () => {
    const worker = await cluster.startWorker({ SHUTDOWN_GRACE_MS: '300' });
    await only(cluster.workers).stop();
    const chat = await cluster.newChat();
    const marker = unique('too-long');
    const held = cluster.model.hold(marker, 'so far');
    const stream = await chat.send(marker);
    await held.reached();
    await stream.until('text-delta');
    const sessionId = String(stream.seen[0]?.data.sessionId);
    const next = await chat.send('next', { sessionId });
    await next.until('message-queued');
    await cluster.startWorker();
    await worker.stop(10_000);
    expect((await stream.all()).at(-1)?.data).to.include({ status: 'interrupted' });
    expect((await next.all()).at(-1)?.data).to.include({ status: 'success' });
    const { messages } = await chat.transcript(sessionId);
    expect(messages[1]).to.deep.include({ status: 'interrupted', content: [{ type: 'text', text: 'so far' }] });
  });
});

/** Resolves once a new connection to this main is refused. */
async function refusesConnections(main: ProductProcess): Promise<void> {
  for (;;) {
    const open = await fetch(`${main.baseUrl}/healthz`, { headers: { connection: 'close' } }).catch(() => undefined);
    if (open === undefined || open.status === 503) return;
    await open.arrayBuffer();
  }
}
