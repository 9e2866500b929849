import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { type CommitWatch, watchCommits } from '../support/commits.js';
import { eventually } from '../support/deadline.js';
import { unique } from '../support/environment.js';
import { never, say } from '../support/model-script.js';
import type { ProductProcess } from '../support/processes.js';

import { useCluster } from '../support/suite.js';
import { TcpProxy } from '../support/tcp-proxy.js';

/** Long against the time from a commit to its notice (a few ms), short against every lease. */
const HELD_BACK_MS = 250;
/** Section 4: an event that reports a commit comes within 3 s of it. */
const BOUND_MS = 3_000;

/**
 * A process dies after it committed and before it could say so: its words to Redis are held back, and cut with it.
 * Two healthy mains and, where it matters, a healthy worker stand beside it.
 */
describe('a process that dies between a commit and its announcement (sections 4 and 9)', function () {
  this.timeout(60_000);
  const cluster = useCluster({ mains: 2, workers: 0, env: { LEASE_MS: '4000' } });
  let chat: Chat;
  let proxy: TcpProxy;
  let victim: ProductProcess;
  let watch: CommitWatch | undefined;
  let committed: Promise<unknown>;

  beforeEach(async () => {
    chat = await cluster.newChat();
    proxy = await new TcpProxy(cluster.redis.url, HELD_BACK_MS).start();
  });
  afterEach(async () => {
    await watch?.stop();
    watch = undefined;
    for (const worker of cluster.workers.splice(0)) if (worker.alive) await worker.stop();
    await proxy.stop();
  });
  const behindProxy = () => ({ REDIS_URL: proxy.url });

  async function watchFor(event: 'insert' | 'update' | 'delete', table: string, condition?: string): Promise<void> {
    watch = await watchCommits(cluster.db, event, table, condition);
    committed = watch.next();
    committed.catch(() => {});
  }

  /** Waits for the commit, then kills the victim with all that it was about to say. */
  async function killAtCommit(): Promise<number> {
    await committed;
    proxy.cut();
    const at = performance.now();
    await victim.kill();
    return at;
  }

  it('the claim: the stream still gets `execution-started`, then the interruption; nothing is replayed', async () => {
    victim = await cluster.startWorker(behindProxy());
    const marker = unique('claimed');
    await watchFor('insert', 'executions');
    const stream = await chat.send(marker);
    await stream.until('message-queued');
    await killAtCommit();
    const started = await stream.until('execution-started', BOUND_MS);
    expect(started.data.message).to.deep.include({ text: marker });
    await cluster.startWorker();
    const done = await stream.until('done', 4_000 + 2_000 + BOUND_MS);
    expect(done.data.status).to.equal('interrupted');
    expect(cluster.model.requestsFor(marker)).to.have.length(0);
  });

  it('the settling: the stream still gets its `done`, and the session is free', async () => {
    victim = await cluster.startWorker(behindProxy());
    const marker = unique('settled');
    const held = cluster.model.hold(marker, 'all', ' of it');
    await watchFor('update', 'executions', `new.status = 'success'`);
    const stream = await chat.send(marker);
    await held.reached();
    held.open();
    await killAtCommit();
    const done = await stream.until('done', BOUND_MS);
    expect(done.data.status).to.equal('success');
    await cluster.startWorker();
    const sessionId = String(done.data.sessionId);
    expect((await chat.turn('Next', { sessionId })).status).to.equal('success');
  });

  it('an interruption: the stream still gets its `done` when the worker that found it dies as well', async () => {
    const doomed = await cluster.startWorker();
    const marker = unique('doomed');
    cluster.model.on(marker, never());
    const stream = await chat.send(marker);
    await cluster.model.request(marker);
    victim = await cluster.startWorker(behindProxy());
    await watchFor('update', 'executions', `new.status = 'interrupted'`);
    await doomed.kill();
    await killAtCommit();
    expect((await stream.until('done', BOUND_MS)).data.status).to.equal('interrupted');
  });

  it('the removal of a pending message: its stream still gets `message-removed`', async () => {
    victim = await cluster.startMain(behindProxy());
    const at = cluster.mains.indexOf(victim);
    const waiting = await chat.send('waits for nobody');
    const { queueId } = (await waiting.until('message-queued')).data;
    await watchFor('delete', 'queue_items');
    const deleting = chat.http(at).delete(`/projects/${chat.projectId}/agents/v2/${chat.agentId}`);
    deleting.catch(() => {});
    await killAtCommit();
    const removed = await waiting.until('message-removed', BOUND_MS);
    expect(removed.data).to.deep.equal({ type: 'message-removed', queueId });
    expect(await waiting.end()).to.equal('clean');
  });

  it('the acceptance: the message is kept and starts within 2 s of there being a worker, without its wake-up', async () => {
    victim = await cluster.startMain(behindProxy());
    const at = cluster.mains.indexOf(victim);
    const marker = unique('kept');
    cluster.model.on(marker, say('here'));
    const sessionId = randomUUID();
    await cluster.startWorker();
    await watchFor('insert', 'queue_items');
    const sending = chat.send(marker, { sessionId, main: at });
    sending.catch(() => {});
    const died = await killAtCommit();
    await cluster.model.request(marker);
    expect(performance.now() - died, 'ms to the request to the model').to.be.below(2_500);
    await eventually('the turn does not end', async () => (await chat.settled(sessionId)).length === 1);
    expect((await chat.transcript(sessionId)).messages).to.have.length(2);
  });
});
