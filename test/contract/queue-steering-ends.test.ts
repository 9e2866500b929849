import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { gate } from '../support/gate.js';
import { callTool, cut, reply, say } from '../support/model-script.js';
import { expectProblem } from '../support/problem.js';
import { shown, startSteeredTurn } from '../support/steered-turn.js';
import { useCluster } from '../support/suite.js';
import { answer } from '../support/tool-server.js';

describe('where steering ends (sections 6 and 9)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    cluster.tools.on('quick', answer({ ok: true }));
    chat = await cluster.newChat({ tools: [cluster.httpTool('quick')] });
  });

  /** A chat with the same tool whose turns may take so many model requests. */
  const limited = (maxSteps: number) =>
    cluster.newChat({
      tools: [cluster.httpTool('quick')],
      limits: { maxSteps, maxDurationMs: 600_000, maxToolOutputChars: 100_000 },
    });

  describe('execution_not_steerable', () => {
    it('for an execution that never was, of another session, or that has ended', async () => {
      const [turn, elsewhere] = [
        await startSteeredTurn(chat, cluster.model),
        await startSteeredTurn(chat, cluster.model),
      ];
      elsewhere.held.open();
      await elsewhere.stream.all();
      const { queueId } = await turn.accept('waits');
      const running = await startSteeredTurn(chat, cluster.model);
      for (const id of [randomUUID(), elsewhere.executionId, running.executionId])
        expectProblem(await turn.other.steer(queueId, id), 409, 'execution_not_steerable');
      expect((await turn.queue.read()).items[0]?.steeringExecutionId).to.equal(null);
      for (const one of [turn, running]) one.held.open();
      await Promise.all([chat.settled(turn.sessionId, 2), chat.settled(running.sessionId)]);
      expect((await turn.queue.read()).steerableExecutionId, 'nothing runs').to.equal(null);
    });

    it('after Stop, which returns what is reserved before the worker knows of it', async () => {
      const turn = await startSteeredTurn(chat, cluster.model);
      const { queueId } = await turn.accept('waits on');
      await turn.queue.steer(queueId, turn.executionId);
      for (const worker of cluster.workers) worker.pause();
      expect(await chat.stop(turn.sessionId, turn.executionId, 1)).to.deep.equal({ cancelRequested: true });
      const stopped = await turn.queue.read();
      expect(stopped.steerableExecutionId).to.equal(null);
      expect(stopped.items[0]?.steeringExecutionId).to.equal(null);
      expectProblem(await turn.queue.steer(queueId, turn.executionId), 409, 'execution_not_steerable');
      for (const worker of cluster.workers) worker.resume();
      const rows = await chat.settled(turn.sessionId, 2);
      expect(rows.map((row) => row.status)).to.deep.equal(['cancelled', 'success']);
      expect(shown(await chat.transcript(turn.sessionId)).at(-2)).to.deep.equal(['user', 'waits on']);
    });

    it('in the last step that maxSteps permits', async () => {
      const short = await limited(2);
      const last = gate();
      const turn = await startSteeredTurn(short, cluster.model, {
        next: [reply(say('two', last), callTool('quick', {}))],
      });
      const { queueId } = await turn.accept('a turn of its own');
      expect((await turn.queue.read()).steerableExecutionId).to.equal(turn.executionId);
      turn.held.open();
      await last.reached();
      expect((await turn.other.read()).steerableExecutionId).to.equal(null);
      expectProblem(await turn.queue.steer(queueId, turn.executionId), 409, 'execution_not_steerable');
      last.open();
      expect((await turn.stream.all()).at(-2)?.data).to.include({ type: 'error', code: 'step_limit' });
      const rows = await short.settled(turn.sessionId, 2);
      expect(rows.map((row) => row.status)).to.deep.equal(['error', 'success']);
    });

    it('with maxSteps 1: in no step at all', async () => {
      const turn = await startSteeredTurn(await limited(1), cluster.model, { ends: 'turn' });
      expect((await turn.other.read()).steerableExecutionId).to.equal(null);
      const { queueId } = await turn.accept('later');
      expectProblem(await turn.queue.steer(queueId, turn.executionId), 409, 'execution_not_steerable');
      turn.held.open();
      await turn.stream.all();
    });
  });

  describe('what was not consumed returns to its place', () => {
    it('when the turn fails, while what was consumed before stays with it', async () => {
      const turn = await startSteeredTurn(chat, cluster.model);
      const [failing, kept] = [unique('failing'), unique('kept')];
      const broken = gate();
      cluster.model.on(failing, reply(say('hm', broken), cut()));
      cluster.model.on(kept, say('my own turn'));
      const { queueId: consumed } = await turn.accept(failing);
      await turn.queue.steer(consumed, turn.executionId);
      turn.held.open();
      await broken.reached();
      const waiting = await chat.send(kept, { sessionId: turn.sessionId, main: 1 });
      const { queueId } = (await waiting.until('message-queued')).data;
      await turn.other.steer(String(queueId), turn.executionId);
      broken.open();
      expect((await turn.stream.all()).at(-1)?.data).to.include({ status: 'error' });
      expect((await waiting.all()).map(({ data }) => data.type)).to.include('execution-started');
      const rows = await chat.executions(turn.sessionId);
      expect(rows.map((row) => row.status)).to.deep.equal(['error', 'success']);
      expect(shown(await chat.transcript(turn.sessionId)).slice(2)).to.deep.equal([
        ['user', failing],
        ['assistant', 'hm'],
        ['user', kept],
        ['assistant', 'my own turn'],
      ]);
    });

    it('when its worker dies: it runs as a turn of its own', async function () {
      this.timeout(60_000);
      const lone = await cluster.startWorker({ LEASE_MS: '2000' });
      for (const worker of cluster.workers.filter((one) => one !== lone)) await worker.stop();
      const turn = await startSteeredTurn(chat, cluster.model);
      const steered = unique('survivor');
      const waiting = await chat.send(steered, { sessionId: turn.sessionId });
      const { queueId } = (await waiting.until('message-queued')).data;
      await turn.queue.steer(String(queueId), turn.executionId);
      await lone.kill();
      cluster.workers.splice(0);
      await Promise.all([cluster.startWorker(), cluster.startWorker()]);
      expect((await turn.stream.all(20_000)).at(-1)?.data).to.include({ status: 'interrupted' });
      const types = (await waiting.all()).map(({ data }) => data.type);
      expect(types).to.include('execution-started').and.not.to.include('message-steered');
      const rows = await chat.executions(turn.sessionId);
      expect(rows.map((row) => row.status)).to.deep.equal(['interrupted', 'success']);
      expect(cluster.model.requestsFor(steered)).to.have.length(1);
    });
  });
});
