import { expect } from 'chai';
import { busySession } from '../support/busy-session.js';
import type { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { say } from '../support/model-script.js';
import { expectProblem } from '../support/problem.js';
import { QueueClient } from '../support/queue.js';
import { useCluster } from '../support/suite.js';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

describe('editing and removing queued messages (section 6)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat();
  });

  describe('PATCH', () => {
    it('gives a new text, keeps place and attachments, and answers with the item', async () => {
      const session = await busySession(chat, cluster.model, 'first', 'second');
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
      await session.finish(4);
    });

    it('an edited message runs with its last accepted text', async () => {
      const [old, newer, last] = [unique('old'), unique('newer'), unique('last')];
      const session = await busySession(chat, cluster.model, old);
      const { queue, other, ids, sessionId } = session;
      cluster.model.on(last, say('as you wish'));
      await queue.edit(ids[0] ?? '', newer);
      await other.edit(ids[0] ?? '', last);
      await session.finish(2);
      const { messages } = await chat.transcript(sessionId);
      expect(messages[2]?.content).to.deep.equal([{ type: 'text', text: last }]);
      for (const gone of [old, newer]) {
        expect(JSON.stringify(cluster.model.requests.map((request) => request.body))).not.to.contain(gone);
        expect(await cluster.db.tablesHolding(gone)).to.deep.equal([]);
      }
    });

    it('400 for an empty text without an attachment, a text too long, and a body of another shape', async () => {
      const session = await busySession(chat, cluster.model, 'stays');
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
      await session.finish(2);
    });
  });

  describe('DELETE', () => {
    it('removes the message and its attachments; its text reaches no model, and its stream is told', async () => {
      const doomed = unique('doomed');
      const session = await busySession(chat, cluster.model, 'before');
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
      await session.finish(2);
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
});
