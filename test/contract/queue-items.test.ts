import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { busySession } from '../support/busy-session.js';
import type { Chat } from '../support/chat.js';
import type { HttpResponse } from '../support/http.js';
import { expectProblem } from '../support/problem.js';
import { QueueClient } from '../support/queue.js';
import { useCluster } from '../support/suite.js';

describe('who may change which queue items (sections 2 and 6)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat();
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
        const session = await busySession(chat, cluster.model, 'stays', 'removed', 'never mind');
        const { queue, other, ids, startedId, executionId } = session;
        const [stays = '', removed = ''] = ids;
        await queue.remove(removed);
        const elsewhere = await busySession(chat, cluster.model, 'of another session');
        const foreign = elsewhere.ids[0] ?? '';
        for (const id of [randomUUID(), foreign, 'no-uuid'])
          expectProblem(await change(other, id, stays, executionId), 404, 'not_found');
        for (const id of [startedId, removed, removed.toUpperCase()])
          expectProblem(await change(other, id, stays, executionId), 409, 'item_started');
        expect((await queue.read()).items.map((item) => item.message)).to.deep.equal(['stays', 'never mind']);
        await Promise.all([session.finish(3), elsewhere.finish(2)]);
        // Also when its turn has long been over.
        for (const id of [startedId, removed, stays])
          expectProblem(await change(queue, id, removed, executionId), 409, 'item_started');
      });
    }

    it('404 comes before what is wrong with the body, and that before 409', async () => {
      const session = await busySession(chat, cluster.model, 'a');
      const { queue, startedId } = session;
      expectProblem(await queue.edit(randomUUID(), 7), 404, 'not_found');
      for (const message of [7, '']) expectProblem(await queue.edit(startedId, message), 400, 'invalid_request');
      expectProblem(await queue.steer(startedId, 'no uuid'), 400, 'invalid_request');
      await session.finish(2);
    });
  });

  it('belongs to the owner with agent:execute: 404 for another member and an admin, 403 without the scope', async () => {
    const session = await busySession(chat, cluster.model, 'mine');
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
    await session.finish(2);
  });
});
