import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { busySession } from '../support/busy-session.js';
import type { Chat, Queue } from '../support/chat.js';
import { unique } from '../support/environment.js';
import type { HttpResponse } from '../support/http.js';
import { expectProblem } from '../support/problem.js';
import { QueueClient } from '../support/queue.js';
import { useCluster } from '../support/suite.js';

describe('reordering queued messages (section 6)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat();
  });

  const order = (response: HttpResponse) => response.json<Queue>().items.map((item) => item.id);

  const moves: [from: number, to: number, result: number[]][] = [
    [0, 2, [1, 2, 0, 3]],
    [3, 1, [0, 3, 1, 2]],
    [1, 2, [0, 2, 1, 3]],
    [3, 0, [3, 0, 1, 2]],
  ];
  for (const [from, to, result] of moves) {
    it(`from place ${from} to place ${to}: those between are shifted, and they run in that order`, async () => {
      const markers = [0, 1, 2, 3].map((at) => unique(`move${at}`));
      const session = await busySession(chat, cluster.model, ...markers);
      const { queue, other, ids, sessionId } = session;
      const moved = await other.reorder(ids[from] ?? '', ids[to] ?? '', ids);
      expect(moved.status, moved.text).to.equal(200);
      expect(order(moved)).to.deep.equal(result.map((at) => ids[at]));
      expect(moved.json()).to.deep.equal(await queue.read());
      const last = await chat.accept('joins the end', { sessionId });
      expect((await queue.ids()).at(-1)).to.equal(last.queueId);
      await session.finish(6);
      const { messages } = await chat.transcript(sessionId);
      const ran = messages.filter((message) => message.role === 'user').map((message) => message.content[0]?.text);
      expect(ran.slice(1)).to.deep.equal([...result.map((at) => markers[at]), 'joins the end']);
    });
  }

  it('409 queue_changed where the client saw another order; nothing moves', async () => {
    const session = await busySession(chat, cluster.model, 'a', 'b', 'c');
    const { queue, other, ids } = session;
    const [a = '', b = '', c = ''] = ids;
    const stale = [[b, a, c], [a, b], [a, b, c, randomUUID()], [], [a, a, b, c]];
    for (const expected of stale) expectProblem(await other.reorder(a, c, expected), 409, 'queue_changed');
    expect(await queue.ids()).to.deep.equal(ids);
    expect(
      (
        await other.reorder(
          c,
          a,
          ids.map((id) => id.toUpperCase()),
        )
      ).status,
    ).to.equal(200);
    expectProblem(await queue.reorder(a, b, ids), 409, 'queue_changed');
    await session.finish(4);
  });

  it('a reserved message keeps its place, and is moved by nobody', async () => {
    const session = await busySession(chat, cluster.model, 'a', 'b', 'c', 'd');
    const { queue, other, ids, executionId } = session;
    const [a = '', b = '', c = '', d = ''] = ids;
    expect((await queue.steer(b, executionId)).status).to.equal(200);
    expectProblem(await other.reorder(d, a, ids), 409, 'queue_changed');
    expectProblem(await other.reorder(b, a, [a, c, d]), 409, 'item_reserved');
    expectProblem(await other.reorder(a, b, [a, c, d]), 409, 'item_reserved');
    const moved = await other.reorder(d, a, [a, c, d]);
    expect(order(moved), 'b stays second').to.deep.equal([d, b, a, c]);
    await queue.giveBack(b);
    expect(await queue.ids()).to.deep.equal([d, b, a, c]);
    await session.finish(5);
  });

  it('onto itself: nothing happens, 200', async () => {
    const session = await busySession(chat, cluster.model, 'a', 'b');
    const { queue, other, ids } = session;
    const [a = ''] = ids;
    const before = await queue.read();
    const moved = await other.reorder(a, a, ids);
    expect(moved.status).to.equal(200);
    expect(moved.json()).to.deep.equal(before);
    await session.finish(3);
  });

  it('400 for a body of another shape; 404 and item_started for the target too', async () => {
    const session = await busySession(chat, cluster.model, 'a', 'b');
    const { queue, ids, startedId } = session;
    const [a = '', b = ''] = ids;
    const path = chat.path(`/${session.sessionId}/queue/${a}/reorder`);
    for (const body of [{}, { targetQueueId: b }, { targetQueueId: 'b', expectedQueueIds: ids }, []])
      expectProblem(await chat.http().post(path, body), 400, 'invalid_request');
    expectProblem(await queue.reorder(a, randomUUID(), ids), 404, 'not_found');
    expectProblem(await queue.reorder(a, startedId, ids), 409, 'item_started');
    expect(await queue.ids()).to.deep.equal(ids);
    await session.finish(3);
  });
});

describe('the queue after restarts (sections 6 and 9)', () => {
  const cluster = useCluster();

  it('order and text survive restarts of all processes and an empty Redis', async function () {
    this.timeout(60_000);
    const chat = await cluster.newChat();
    const marker = unique('busy');
    const held = cluster.model.hold(marker);
    const { sessionId } = await chat.accept(marker);
    await held.reached();
    const [a, b, c] = [
      (await chat.accept('a', { sessionId })).queueId,
      (await chat.accept('b', { sessionId })).queueId,
      (await chat.accept('c', { sessionId })).queueId,
    ];
    const queue = new QueueClient(chat, sessionId);
    await queue.reorder(c, a, [a, b, c]);
    await queue.edit(b, 'b, edited');
    for (const one of [...cluster.mains.splice(0), ...cluster.workers.splice(0)]) await one.kill();
    await cluster.redis.client.flushdb();
    held.open();
    await Promise.all([cluster.startMain(), cluster.startMain()]);
    const { items } = await new QueueClient(chat, sessionId, 1).read();
    expect(items.map(({ id, message }) => [id, message])).to.deep.equal([
      [c, 'c'],
      [a, 'a'],
      [b, 'b, edited'],
    ]);
    await Promise.all([cluster.startWorker(), cluster.startWorker()]);
    const rows = await chat.settled(sessionId, 4);
    expect(rows.map((row) => row.status)).to.deep.equal(['interrupted', 'success', 'success', 'success']);
    const { messages } = await chat.transcript(sessionId);
    const ran = messages.filter((message) => message.role === 'user').map((message) => message.content[0]?.text);
    expect(ran.slice(1)).to.deep.equal(['c', 'a', 'b, edited']);
  });
});
