import { expect } from 'chai';
import { type Cluster, startCluster } from '../support/cluster.js';
import { eventually } from '../support/deadline.js';
import { unique } from '../support/environment.js';
import { say } from '../support/model-script.js';
import { QueueClient } from '../support/queue.js';
import { type OwnRedis, startRedis } from '../support/redis.js';

describe('Redis goes away (sections 8 and 9)', function () {
  this.timeout(90_000);
  let redis: OwnRedis;
  let cluster: Cluster;
  before(async () => {
    redis = await startRedis();
    cluster = await startCluster({ redisUrl: redis.url });
  });
  after(async () => {
    try {
      await cluster.stop();
    } finally {
      await redis.stop();
    }
  });

  it('messages are accepted meanwhile, and start when it is back, empty', async () => {
    const chat = await cluster.newChat();
    const { sessionId } = await chat.turn('Before');
    await redis.kill();
    const marker = unique('meanwhile');
    cluster.model.on(marker, say('late, but here'));
    const stream = await chat.send(marker, { sessionId });
    expect((await stream.next()).data.type).to.equal('message-queued');
    const ready = await cluster.anonymous().get('/readyz');
    expect(ready.status, ready.text).to.equal(200);
    await eventually('/readyz does not say degraded', async () =>
      (await cluster.anonymous().get('/readyz')).text.includes('degraded'),
    );
    expect((await chat.queue(sessionId, 1)).items).to.have.length(1);
    expect((await chat.transcript(sessionId, 1)).messages).to.have.length(2);
    await redis.restart('empty');
    expect((await stream.all(30_000)).at(-1)?.data).to.include({ type: 'done', status: 'success' });
    await eventually(
      '/readyz still says degraded',
      async () => !(await cluster.anonymous().get('/readyz')).text.includes('degraded'),
    );
  });

  it('Stop works without it, and a running turn is cancelled', async () => {
    const chat = await cluster.newChat();
    const marker = unique('stop');
    const held = cluster.model.hold(marker);
    const stream = await chat.send(marker);
    const { sessionId, executionId } = (await stream.until('execution-started')).data;
    await held.reached();
    await redis.kill();
    expect(await chat.stop(String(sessionId), String(executionId), 1)).to.deep.equal({ cancelRequested: true });
    expect(await (await cluster.model.request(marker)).over).to.equal('aborted');
    await chat.settled(String(sessionId));
    expect((await stream.until('done')).data).to.include({ status: 'cancelled' });
    await redis.restart('empty');
    expect((await chat.turn('Again', { sessionId: String(sessionId) })).status).to.equal('success');
  });

  it('the queue is changed without it, and a message is steered in', async () => {
    const chat = await cluster.newChat();
    const [marker, text] = [unique('queue'), unique('steered')];
    const held = cluster.model.hold(marker);
    cluster.model.on(text, say('all the same'));
    const stream = await chat.send(marker);
    const { sessionId, executionId } = (await stream.until('execution-started')).data as Record<string, string>;
    await held.reached();
    await redis.kill();
    const queue = new QueueClient(chat, sessionId ?? '', 1);
    const ids: string[] = [];
    for (const each of ['a', 'b', 'c']) ids.push((await chat.accept(each, { sessionId: sessionId ?? '' })).queueId);
    const [a = '', b = '', c = ''] = ids;
    const changes = [
      await queue.reorder(c, a, ids),
      await queue.edit(c, text),
      await queue.steer(c, executionId ?? ''),
      await queue.steer(b, executionId ?? ''),
      await queue.giveBack(b),
      await queue.remove(a),
      await queue.remove(b),
    ];
    for (const change of changes) expect(change.status, change.text).to.equal(200);
    held.open();
    await cluster.model.request(text);
    await redis.restart('empty');
    const types = (await stream.all(30_000)).map(({ data }) => data.type);
    expect(types).to.include('message-steered');
    expect(types.at(-1)).to.equal('done');
  });

  it('a turn that runs meanwhile comes to its end, and its stream to its `done`', async () => {
    const chat = await cluster.newChat();
    const marker = unique('through');
    const held = cluster.model.hold(marker, 'one', ' two');
    const stream = await chat.send(marker);
    await held.reached();
    await redis.restart('empty');
    held.open();
    const events = await stream.all(30_000);
    expect(events.at(-1)?.data).to.include({ type: 'done', status: 'success' });
    const { messages } = await chat.transcript(String(events[0]?.data.sessionId));
    expect(messages[1]?.content).to.deep.equal([{ type: 'text', text: 'one two' }]);
  });

  it('a frozen one fails neither sending nor reading', async () => {
    const chat = await cluster.newChat();
    const { sessionId } = await chat.turn('Warm');
    redis.pause();
    try {
      await chat.accept('Cold', { sessionId });
      expect((await chat.transcript(sessionId, 1)).messages).to.have.length(2);
    } finally {
      redis.resume();
    }
    await chat.settled(sessionId, 2);
  });

  it('SIGTERM ends every process, with code 0, while it is away, frozen, or only just back', async () => {
    const everybody = () => [...cluster.mains, ...cluster.workers].filter((one) => one.alive);
    const states: Record<string, () => Promise<void> | void> = {
      away: () => redis.kill(),
      frozen: () => redis.pause(),
      'just back': () => redis.restart('keep'),
    };
    for (const [state, enter] of Object.entries(states)) {
      await enter();
      const stopped = await Promise.allSettled(everybody().map((one) => one.stop(10_000)));
      redis.resume();
      await redis.restart('keep');
      const failed = stopped.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
      expect(failed, state).to.deep.equal([]);
      await Promise.all([cluster.startMain(), cluster.startMain(), cluster.startWorker()]);
    }
  });
});
