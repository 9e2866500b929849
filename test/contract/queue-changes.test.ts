import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Chat, Queue } from '../support/chat.js';
import { unique } from '../support/environment.js';
import type { HttpResponse } from '../support/http.js';
import { say } from '../support/model-script.js';
import { expectProblem } from '../support/problem.js';
import { QueueClient } from '../support/queue.js';
import { useCluster } from '../support/suite.js';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

describe('changing the queue (section 6)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat();
  });

  /** A session whose first turn stands still until `open`, with messages of these texts queued behind it. */
  async function busy(...texts: string[]) {
    const marker = unique('busy');
    const held = cluster.model.hold(marker);
    const { sessionId, queueId } = await chat.accept(marker);
    await held.reached();
    const queued = [];
    for (const [at, text] of texts.entries()) queued.push(await chat.accept(text, { sessionId, main: at % 2 }));
    const [row] = await chat.executions(sessionId);
    const ids = queued.map((accepted) => accepted.queueId);
    const queue = new QueueClient(chat, sessionId);
    return { sessionId, executionId: row?.id ?? '', startedId: queueId, queue, other: queue.on(1), ids, held };
  }

  /** Lets the session's turns end, so that the next test finds idle workers. */
  async function finish({ held, sessionId }: { held: { open(): void }; sessionId: string }, turns: number) {
    held.open();
    await chat.settled(sessionId, turns);
  }

  const order = (response: HttpResponse) => response.json<Queue>().items.map((item) => item.id);

  describe('PATCH', () => {
    it('gives a new text, keeps place and attachments, and answers with the item', async () => {
      const session = await busy('first', 'second');
      const { queue, other, ids, sessionId } = session;
      const files = [{ fileName: 'a.png', mimeType: 'image/png', data: PIXEL }];
      const withFile = await chat.accept('look at this', { sessionId, attachments: files });
      const before = (await queue.read()).items;
      const edited = await other.edit(ids[0] ?? '', 'first, better 🐢');
      expect(edited.status).to.equal(200);
      expect(edited.json()).to.deep.equal({ ...before[0], message: 'first, better 🐢' });
      const wordless = await queue.edit(withFile.queueId, '');
      expect(wordless.status).to.equal(200);
      expect(wordless.json<{ attachments: unknown }>().attachments).to.deep.equal(before[2]?.attachments);
      expect((await other.read()).items).to.deep.equal([
        { ...before[0], message: 'first, better 🐢' },
        before[1],
        { ...before[2], message: '' },
      ]);
      await finish(session, 4);
    });

    it('an edited message runs with its last accepted text', async () => {
      const [old, newer, last] = [unique('old'), unique('newer'), unique('last')];
      const session = await busy(old);
      const { queue, other, ids, sessionId } = session;
      cluster.model.on(last, say('as you wish'));
      await queue.edit(ids[0] ?? '', newer);
      await other.edit(ids[0] ?? '', last);
      await finish(session, 2);
      const { messages } = await chat.transcript(sessionId);
      expect(messages[2]?.content).to.deep.equal([{ type: 'text', text: last }]);
      for (const gone of [old, newer]) {
        expect(JSON.stringify(cluster.model.requests.map((request) => request.body))).not.to.contain(gone);
        expect(await cluster.db.tablesHolding(gone)).to.deep.equal([]);
      }
    });

    it('400 for an empty text without an attachment, a text too long, and a body of another shape', async () => {
      const session = await busy('stays');
      const { queue, ids } = session;
      const [id = ''] = ids;
      for (const message of ['', 7, null, 'x'.repeat(100_001), 'a\0b']) {
        const body = expectProblem(await queue.edit(id, message), 400, 'invalid_request');
        expect(body.errors, JSON.stringify(message).slice(0, 20)).to.be.an('array').and.not.be.empty;
      }
      const path = chat.path(`/${session.sessionId}/queue/${id}`);
      const more = { message: 'x', position: 1 };
      expectProblem(await chat.http().request(path, { method: 'PATCH', body: more }), 400, 'invalid_request');
      const text = { method: 'PATCH', body: 'message', headers: { 'content-type': 'text/plain' } };
      expectProblem(await chat.http().request(path, text), 415, 'unsupported_media_type');
      expect((await queue.read()).items[0]?.message).to.equal('stays');
      await finish(session, 2);
    });
  });

  describe('DELETE', () => {
    it('removes the message and its attachments; its text reaches no model, and its stream is told', async () => {
      const doomed = unique('doomed');
      const session = await busy('before');
      const { sessionId, queue, other } = session;
      const files = [{ fileName: 'secret-name.png', mimeType: 'image/png', data: PIXEL }];
      const waiting = await chat.send(doomed, { sessionId, attachments: files, main: 1 });
      const { queueId } = (await waiting.until('message-queued')).data;
      const [file] = (await queue.read()).items[1]?.attachments ?? [];
      const removed = await queue.remove(String(queueId));
      expect(removed.status).to.equal(200);
      expect(removed.json()).to.deep.equal({ removed: true });
      expect((await waiting.until('message-removed', 1_000)).data).to.deep.equal({ type: 'message-removed', queueId });
      expect(await waiting.end()).to.equal('clean');
      expect(waiting.seen.map((event) => event.data.type)).to.deep.equal(['message-queued', 'message-removed']);
      expect((await other.read()).items.map((item) => item.message)).to.deep.equal(['before']);
      const bytes = await chat.http(1).get(chat.path(`/attachments/${file?.attachmentId}`));
      expectProblem(bytes, 404, 'not_found');
      await finish(session, 2);
      expect(JSON.stringify(cluster.model.requests.map((request) => request.body))).not.to.contain(doomed);
      for (const trace of [doomed, 'secret-name']) expect(await cluster.db.tablesHolding(trace)).to.deep.equal([]);
    });

    it('leaves nothing of a first message in the title either', async () => {
      const held = await pausedSession();
      await held.queue.remove(held.queueId);
      expect(await cluster.db.tablesHolding(held.text)).to.deep.equal([]);
      const later = await chat.accept('a better beginning', { sessionId: held.sessionId });
      const list = (await chat.http().get(chat.path())).json<{ sessions: { id: string; title: string }[] }>();
      expect(list.sessions.find(({ id }) => id === held.sessionId)?.title).to.equal('a better beginning');
      await held.queue.edit(later.queueId, '  and a better one yet  ');
      const again = (await chat.http(1).get(chat.path())).json<{ sessions: { id: string; title: string }[] }>();
      expect(again.sessions.find(({ id }) => id === held.sessionId)?.title).to.equal('and a better one yet');
      await held.resume();
    });

    /** A session whose first message waits, since its owner may not execute for a moment. */
    async function pausedSession() {
      for (const worker of cluster.workers) worker.pause();
      const text = unique('first');
      const { sessionId, queueId } = await chat.accept(text);
      const resume = async () => {
        for (const worker of cluster.workers) worker.resume();
        await chat.settled(sessionId);
      };
      return { text, sessionId, queueId, queue: new QueueClient(chat, sessionId, 1), resume };
    }
  });

  describe('reorder', () => {
    const moves: [from: number, to: number, result: number[]][] = [
      [0, 2, [1, 2, 0, 3]],
      [3, 1, [0, 3, 1, 2]],
      [1, 2, [0, 2, 1, 3]],
      [3, 0, [3, 0, 1, 2]],
    ];
    for (const [from, to, result] of moves) {
      it(`from place ${from} to place ${to}: those between are shifted, and they run in that order`, async () => {
        const markers = [0, 1, 2, 3].map((at) => unique(`move${at}`));
        const session = await busy(...markers);
        const { queue, other, ids, sessionId } = session;
        const moved = await other.reorder(ids[from] ?? '', ids[to] ?? '', ids);
        expect(moved.status, moved.text).to.equal(200);
        expect(order(moved)).to.deep.equal(result.map((at) => ids[at]));
        expect(moved.json()).to.deep.equal(await queue.read());
        const last = await chat.accept('joins the end', { sessionId });
        expect((await queue.ids()).at(-1)).to.equal(last.queueId);
        await finish(session, 6);
        const { messages } = await chat.transcript(sessionId);
        const ran = messages.filter((message) => message.role === 'user').map((message) => message.content[0]?.text);
        expect(ran.slice(1)).to.deep.equal([...result.map((at) => markers[at]), 'joins the end']);
      });
    }

    it('409 queue_changed where the client saw another order; nothing moves', async () => {
      const session = await busy('a', 'b', 'c');
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
      await finish(session, 4);
    });

    it('a reserved message keeps its place, and is moved by nobody', async () => {
      const session = await busy('a', 'b', 'c', 'd');
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
      await finish(session, 5);
    });

    it('onto itself: nothing happens, 200', async () => {
      const session = await busy('a', 'b');
      const { queue, other, ids } = session;
      const [a = ''] = ids;
      const before = await queue.read();
      const moved = await other.reorder(a, a, ids);
      expect(moved.status).to.equal(200);
      expect(moved.json()).to.deep.equal(before);
      await finish(session, 3);
    });

    it('400 for a body of another shape; 404 and item_started for the target too', async () => {
      const session = await busy('a', 'b');
      const { queue, ids, startedId } = session;
      const [a = '', b = ''] = ids;
      const path = chat.path(`/${session.sessionId}/queue/${a}/reorder`);
      for (const body of [{}, { targetQueueId: b }, { targetQueueId: 'b', expectedQueueIds: ids }, []])
        expectProblem(await chat.http().post(path, body), 400, 'invalid_request');
      expectProblem(await queue.reorder(a, randomUUID(), ids), 404, 'not_found');
      expectProblem(await queue.reorder(a, startedId, ids), 409, 'item_started');
      expect(await queue.ids()).to.deep.equal(ids);
      await finish(session, 3);
    });
  });

  describe('an id', () => {
    type Change = (queue: QueueClient, queueId: string, known: string, executionId: string) => Promise<HttpResponse>;
    const changes: Record<string, Change> = {
      PATCH: (queue, id) => queue.edit(id, 'other words'),
      DELETE: (queue, id) => queue.remove(id),
      reorder: (queue, id, known) => queue.reorder(id, known, [known]),
      steer: (queue, id, _, executionId) => queue.steer(id, executionId),
      'DELETE steer': (queue, id) => queue.giveBack(id),
    };
    for (const [what, change] of Object.entries(changes)) {
      it(`that never was in this session is 404 for ${what}, that started or was removed 409 item_started`, async () => {
        const session = await busy('stays', 'removed', 'never mind');
        const { queue, other, ids, startedId, executionId } = session;
        const [stays = '', removed = ''] = ids;
        await queue.remove(removed);
        const elsewhere = await busy('of another session');
        const foreign = elsewhere.ids[0] ?? '';
        for (const id of [randomUUID(), foreign, 'no-uuid'])
          expectProblem(await change(other, id, stays, executionId), 404, 'not_found');
        for (const id of [startedId, removed, removed.toUpperCase()])
          expectProblem(await change(other, id, stays, executionId), 409, 'item_started');
        expect((await queue.read()).items.map((item) => item.message)).to.deep.equal(['stays', 'never mind']);
        await Promise.all([finish(session, 3), finish(elsewhere, 2)]);
        // Also when its turn has long been over.
        for (const id of [startedId, removed, stays])
          expectProblem(await change(queue, id, removed, executionId), 409, 'item_started');
      });
    }

    it('404 comes before what is wrong with the body, and that before 409', async () => {
      const session = await busy('a');
      const { queue, startedId } = session;
      expectProblem(await queue.edit(randomUUID(), 7), 404, 'not_found');
      for (const message of [7, '']) expectProblem(await queue.edit(startedId, message), 400, 'invalid_request');
      expectProblem(await queue.steer(startedId, 'no uuid'), 400, 'invalid_request');
      await finish(session, 2);
    });
  });

  it('belongs to the owner with agent:execute: 404 for another member and an admin, 403 without the scope', async () => {
    const session = await busy('mine');
    const { sessionId, ids, executionId } = session;
    const [id = ''] = ids;
    const asked = async (by: Chat, status: number, code: string) => {
      const queue = new QueueClient(by, sessionId, 1);
      const answers = [
        await queue.edit(id, 'x'),
        await queue.remove(id),
        await queue.reorder(id, id, [id]),
        await queue.steer(id, executionId),
        await queue.giveBack(id),
      ];
      for (const answer of answers) expectProblem(answer, status, code);
    };
    const [admin, viewer] = [await cluster.newUser(), await cluster.newUser()];
    await cluster.addMember(chat.user, chat.projectId, admin, 'admin');
    await cluster.addMember(chat.user, chat.projectId, viewer, 'viewer');
    await asked(chat.as(admin), 404, 'not_found');
    await asked(chat.as(viewer), 403, 'forbidden');
    await asked(chat.as(await cluster.newUser()), 404, 'not_found');
    const read = await chat
      .as(admin)
      .http()
      .get(chat.path(`/${sessionId}/queue`));
    expectProblem(read, 404, 'not_found');
    expect((await session.queue.read()).items[0]?.message).to.equal('mine');
    await finish(session, 2);
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
