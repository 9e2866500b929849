import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { type Cluster, startCluster } from '../support/cluster.js';
import { never } from '../support/deadline.js';
import { unique } from '../support/environment.js';
import { expectProblem } from '../support/problem.js';
import { QueueClient } from '../support/queue.js';
import { useCluster } from '../support/suite.js';

describe('AGENTS_ENABLED=false (section 9)', () => {
  describe('on every process', () => {
    const cluster = useCluster({ mains: 1, workers: 1, env: { AGENTS_ENABLED: 'false' } });
    let chat: Chat;
    before(async () => {
      chat = await cluster.newChat();
    });

    it('404 agents_disabled for sending; the checks of access come first', async () => {
      expectProblem(await chat.post({ message: 'x' }), 404, 'agents_disabled');
      expectProblem(await cluster.anonymous().post(chat.path(), { message: 'x' }), 401, 'unauthorized');
      const stranger = await cluster.newUser();
      expectProblem(await chat.as(stranger).post({ message: 'x' }), 404, 'not_found');
    });

    it('reading works', async () => {
      expect((await chat.http().expect(200, chat.path())).json()).to.deep.include({ sessions: [] });
      await chat.http().expect(200, `/projects/${chat.projectId}/agents/v2/${chat.agentId}`);
    });
  });

  it('switched off later: running turns finish, nothing is claimed; reading, queue removal and Stop work', async function () {
    this.timeout(60_000);
    const cluster = await startCluster({ mains: 1, workers: 1 });
    try {
      await switchOff(cluster);
    } finally {
      await cluster.stop();
    }
  });
});

async function switchOff(cluster: Cluster): Promise<void> {
  const chat = await cluster.newChat();
  const [finishes, stopped] = [unique('finishes'), unique('stopped')];
  const [first, second] = [cluster.model.hold(finishes, 'go', ' on'), cluster.model.hold(stopped)];
  const one = await chat.accept(finishes);
  const two = await chat.accept(stopped);
  await Promise.all([first.reached(), second.reached()]);
  const main = await cluster.startMain({ AGENTS_ENABLED: 'false' });
  const at = cluster.mains.indexOf(main);

  expectProblem(await chat.post({ message: 'x', sessionId: one.sessionId }, { main: at }), 404, 'agents_disabled');
  const { activeExecutionId } = await chat.transcript(two.sessionId, at);
  const queue = new QueueClient(chat, two.sessionId, at);
  const pending = [(await chat.accept('p', two)).queueId, (await chat.accept('q', two)).queueId] as const;
  expect((await queue.reorder(pending[1], pending[0], pending)).status, 'a reorder').to.equal(200);
  for (const id of pending) expect((await queue.remove(id)).json()).to.deep.equal({ removed: true });
  expect(await chat.stop(two.sessionId, activeExecutionId ?? '', at)).to.deep.equal({ cancelRequested: true });
  first.open();
  expect((await chat.settled(one.sessionId)).map((row) => row.status)).to.deep.equal(['success']);
  expect((await chat.settled(two.sessionId)).map((row) => row.status)).to.deep.equal(['cancelled']);

  // A worker that is switched off claims nothing: what is accepted elsewhere waits.
  await cluster.workers[0]?.stop();
  await cluster.startWorker({ AGENTS_ENABLED: 'false' });
  const kept = await chat.accept(unique('kept'));
  // A session that can start does so within 2 s (section 9, 3): a worker that would claim it had its time.
  await never('the message started', async () => (await chat.queue(kept.sessionId)).items.length === 0, 2_500);
  await cluster.startWorker();
  await chat.settled(kept.sessionId);
}
