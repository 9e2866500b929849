import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { refuse, say } from '../support/model-script.js';
import { expectProblem } from '../support/problem.js';
import { useCluster } from '../support/suite.js';

interface SessionRow {
  readonly id: string;
  readonly title: string;
  readonly status: string;
  readonly updatedAt: string;
}

describe('sessions and executions (section 5)', () => {
  const cluster = useCluster();
  let chat: Chat;
  beforeEach(async () => {
    chat = await cluster.newChat();
  });
  const list = async (query = '', main = 0) =>
    (await chat.http(main).expect(200, chat.path(query))).json<{ sessions: SessionRow[] }>().sessions;

  describe('the list of sessions', () => {
    it('is empty at first, then newest first', async () => {
      expect(await list()).to.deep.equal([]);
      const first = await chat.turn('The first one');
      const second = await chat.turn('The second one');
      expect((await list('', 1)).map((row) => row.id)).to.deep.equal([second.sessionId, first.sessionId]);
      await chat.turn('Again', { sessionId: first.sessionId });
      expect((await list()).map((row) => row.id)).to.deep.equal([first.sessionId, second.sessionId]);
    });

    it('titles a session with the beginning of its first message', async () => {
      const { sessionId } = await chat.turn('How do I boil an egg?');
      await chat.turn('And a potato?', { sessionId });
      expect((await list())[0]?.title).to.equal('How do I boil an egg?');
      await chat.turn('😀'.repeat(5_000));
      const title = (await list())[0]?.title ?? '';
      expect(title.length).to.be.within(1, 500);
      expect(title).to.match(/^(😀)+…?$/u);
    });

    it('says what a session is doing: idle, queued, running', async () => {
      const marker = unique('held');
      const held = cluster.model.hold(marker);
      const { sessionId } = await chat.accept(marker);
      await held.reached();
      expect((await list())[0]).to.include({ id: sessionId, status: 'running' });
      held.open();
      await chat.settled(sessionId);
      expect((await list())[0]).to.include({ id: sessionId, status: 'idle' });
    });

    it('is paged', async () => {
      const ids: string[] = [];
      for (const text of ['a', 'b', 'c']) ids.unshift((await chat.turn(text)).sessionId);
      const page = await list('?limit=2');
      expect(page.map((row) => row.id)).to.deep.equal(ids.slice(0, 2));
      const rest = await list(`?limit=2&before=${ids[1]}`);
      expect(rest.map((row) => row.id)).to.deep.equal(ids.slice(2));
    });
  });

  describe('the list of executions', () => {
    it('has each in its order, with usage, times and error', async () => {
      const [good, bad] = [unique('good'), unique('bad')];
      cluster.model.on(good, say('ok').withUsage(12, 3));
      cluster.model.on(bad, refuse(400, 'no'));
      const first = await chat.turn(good);
      const second = await chat.turn(bad, { sessionId: first.sessionId });
      const rows = await chat.executions(first.sessionId, 1);
      expect(rows.map((row) => [row.id, row.runId, row.status])).to.deep.equal([
        [first.executionId, first.runId, 'success'],
        [second.executionId, second.runId, 'error'],
      ]);
      expect(rows[0]).to.deep.include({ usage: { inputTokens: 12, outputTokens: 3 }, error: null });
      expect(rows[1]?.error).to.include({ code: 'model_refused' });
      for (const row of rows) {
        const times = [row.createdAt, row.startedAt, row.finishedAt].map((time) => Date.parse(time ?? ''));
        expect([...times].sort((a, b) => a - b)).to.deep.equal(times);
      }
    });

    it('shows a running one without an end', async () => {
      const marker = unique('running');
      const held = cluster.model.hold(marker);
      const { sessionId } = await chat.accept(marker);
      await held.reached();
      expect((await chat.executions(sessionId))[0]).to.include({ status: 'running', finishedAt: null, error: null });
      held.open();
      await chat.settled(sessionId);
    });
  });

  describe('deleting a session', () => {
    const remove = (sessionId: string, main = 0) => chat.http(main).delete(chat.path(`/${sessionId}`));

    it('removes it for good: its id stays 404, also for a new message', async () => {
      const turn = await chat.turn('Forget me');
      const removed = await remove(turn.sessionId, 1);
      expect(removed.status).to.equal(200);
      expect(removed.json()).to.deep.equal({ deleted: true });
      for (const rest of ['/messages', '/executions', '/queue', `/executions/${turn.executionId}/events`]) {
        expectProblem(await chat.http().get(chat.path(`/${turn.sessionId}${rest}`)), 404, 'not_found');
      }
      expectProblem(await chat.post({ message: 'Back?', sessionId: turn.sessionId }), 404, 'not_found');
      expectProblem(await remove(turn.sessionId), 404, 'not_found');
      expect(await list()).to.deep.equal([]);
    });

    it('409 execution_running while one runs', async () => {
      const marker = unique('busy');
      const held = cluster.model.hold(marker);
      const { sessionId } = await chat.accept(marker);
      await held.reached();
      expectProblem(await remove(sessionId, 1), 409, 'execution_running');
      held.open();
      await chat.settled(sessionId);
      expect((await remove(sessionId)).status).to.equal(200);
    });

    it('404 for one that never was', async () => {
      expectProblem(await remove(randomUUID()), 404, 'not_found');
    });
  });
});
