import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { type CommitWatch, watchCommits } from '../support/commits.js';
import { unique } from '../support/environment.js';
import { never, say } from '../support/model-script.js';
import { useCluster } from '../support/suite.js';
import { TcpProxy } from '../support/tcp-proxy.js';

/** Long against a test's reaction to a commit, so that what the worker does next in Redis comes after that. */
const HELD_BACK_MS = 250;

/** What a worker does between the commit of a claim and the first request to the model (section 9, 4). */
describe('admission under the chat lock (section 9)', function () {
  this.timeout(60_000);
  const cluster = useCluster({ mains: 2, workers: 0 });
  let chat: Chat;
  let claims: CommitWatch;
  before(async () => {
    const proxy = await new TcpProxy(cluster.redis.url, HELD_BACK_MS).start();
    claims = await watchCommits(cluster.db, 'insert', 'executions');
    cluster.defer(() => Promise.all([claims.stop(), proxy.stop()]));
    await cluster.startWorker({ REDIS_URL: proxy.url });
    chat = await cluster.newChat();
  });

  /** The chat lock's keys in Redis at this moment. */
  const locks = (sessionId: string) => cluster.redis.client.keys(`*${sessionId}*lock*`);

  it('a lost lock ends the execution interrupted, without a request to the model; the next message starts', async () => {
    const [marker, next, sessionId] = [unique('lost'), unique('next'), randomUUID()];
    cluster.model.on(next, say('started'));
    const claimed = claims.next({ session_id: sessionId });
    const stream = await chat.send(marker, { sessionId });
    await claimed;
    const held = await locks(sessionId);
    expect(held, 'locks at the commit of the claim').to.have.length(1);
    await cluster.redis.client.del(held);
    const events = await stream.all();
    expect(events.at(-1)?.data).to.include({ type: 'done', status: 'interrupted' });
    expect(cluster.model.requestsFor(marker)).to.have.length(0);
    await chat.accept(next, { sessionId });
    expect((await chat.settled(sessionId, 2)).map((row) => row.status)).to.deep.equal(['interrupted', 'success']);
  });

  it('another’s lock in its place is not released, nor is the runtime started under it', async () => {
    const [marker, sessionId] = [unique('taken'), randomUUID()];
    const claimed = claims.next({ session_id: sessionId });
    const stream = await chat.send(marker, { sessionId });
    await claimed;
    const [key = ''] = await locks(sessionId);
    await cluster.redis.client.set(key, 'somebody else', 'PX', 60_000);
    expect((await stream.until('done')).data.status).to.equal('interrupted');
    expect(cluster.model.requestsFor(marker)).to.have.length(0);
    expect(await cluster.redis.client.get(key)).to.equal('somebody else');
    await cluster.redis.client.del(key);
  });

  it('Stop waits for the admission, on whichever main it arrives, and then cancels', async () => {
    for (const main of [0, 1]) {
      const [marker, sessionId] = [unique('waits'), randomUUID()];
      cluster.model.on(marker, never());
      const claimed = claims.next({ session_id: sessionId });
      const stream = await chat.send(marker, { sessionId });
      const executionId = String((await claimed).id);
      expect(await chat.stop(sessionId, executionId, main)).to.deep.equal({ cancelRequested: true });
      expect((await stream.all()).at(-1)?.data).to.include({ type: 'done', status: 'cancelled', executionId });
    }
    await cluster.model.idle();
  });

  it('a mark that is there when admission looks again ends it cancelled, without a request to the model', async () => {
    // No Stop can be timed to fall between two statements of the worker: the claim itself commits the mark.
    await cluster.db.query(`
      create function mark_at_claim() returns trigger language plpgsql as $$
      begin new.cancel_requested_at := clock_timestamp(); new.steerable := false; return new; end $$`);
    await cluster.db.query(`
      create trigger mark_at_claim before insert on executions for each row execute function mark_at_claim()`);
    const marker = unique('marked');
    const stream = await chat.send(marker);
    const events = await stream.all();
    await cluster.db.query('drop trigger mark_at_claim on executions');
    expect(events.map((event) => event.data.type)).to.include('execution-started');
    expect(events.at(-1)?.data).to.include({ type: 'done', status: 'cancelled' });
    expect(cluster.model.requestsFor(marker)).to.have.length(0);
  });

  it('Stop works on a main without Redis, in the middle of an admission, too', async () => {
    const way = await new TcpProxy(cluster.redis.url).start();
    cluster.defer(() => way.stop());
    const main = cluster.mains.indexOf(await cluster.startMain({ REDIS_URL: way.url }));
    way.cut();
    const [marker, sessionId] = [unique('unheard'), randomUUID()];
    cluster.model.on(marker, never());
    const claimed = claims.next({ session_id: sessionId });
    const stream = await chat.send(marker, { sessionId });
    const executionId = String((await claimed).id);
    expect(await chat.stop(sessionId, executionId, main)).to.deep.equal({ cancelRequested: true });
    expect((await stream.all()).at(-1)?.data).to.include({ type: 'done', status: 'cancelled', executionId });
    await cluster.model.idle();
  });

  it('a second running execution of a session is refused by Postgres itself', async () => {
    const marker = unique('one');
    const held = cluster.model.hold(marker);
    const { sessionId } = await chat.accept(marker);
    await held.reached();
    const second = cluster.db.query(
      `insert into executions select (jsonb_populate_record(e, jsonb_build_object('id', $2::uuid, 'number', 99, 'seq', 99, 'run_id', $2::uuid))).*
       from executions e where session_id = $1`,
      [sessionId, randomUUID()],
    );
    const refusal = await second.then(
      () => undefined,
      (error: { code?: string }) => error.code,
    );
    expect(refusal, 'the code of a unique violation').to.equal('23505');
    held.open();
    await chat.settled(sessionId);
  });
});
