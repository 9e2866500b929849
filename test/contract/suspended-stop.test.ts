import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { textOf } from '../support/model-rules.js';
import { callTool, reply, say } from '../support/model-script.js';
import { expectProblem } from '../support/problem.js';
import { APPROVE, readResumed, type SuspendedRun, suspend } from '../support/resume.js';
import { useCluster } from '../support/suite.js';
import { answer } from '../support/tool-server.js';

describe('Stop of a suspended turn (section 5)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat({
      tools: [cluster.httpTool('act', { requireApproval: true }), cluster.httpTool('look')],
    });
    cluster.tools.on('act', answer('acted'));
    cluster.tools.on('look', answer('looked'));
  });

  async function waiting(sessionId?: string): Promise<SuspendedRun> {
    const marker = unique('waiting');
    const step = reply(callTool('act', { n: 1 }), callTool('look', {}), callTool('act', { n: 2 }));
    cluster.model.on(marker, step, say('on'));
    return suspend(chat, marker, sessionId === undefined ? {} : { sessionId });
  }

  const states = async (run: SuspendedRun) =>
    (await chat.transcript(run.sessionId)).messages.at(-1)?.content.map((part) => part.state);

  for (const main of [0, 1]) {
    it(`by main ${main}: cancelled, its unfinished calls too, nothing waits any more; a later answer is 409`, async () => {
      const run = await waiting();
      await run.accept(run.id(0), APPROVE);
      expect(await chat.stop(run.sessionId, run.executionId, main)).to.deep.equal({ cancelRequested: true });
      const [row] = await chat.executions(run.sessionId);
      expect(row).to.include({ status: 'cancelled', error: null });
      const transcript = await chat.transcript(run.sessionId);
      expect(transcript).to.deep.include({ openSuspensions: [], activeExecutionId: null });
      expect(transcript.messages.at(-1)).to.include({ status: 'cancelled' });
      expect(await states(run)).to.deep.equal(['cancelled', 'done', 'cancelled']);
      for (const at of [0, 1]) {
        const late = await run.post({ toolCallId: run.id(at), resumeData: APPROVE });
        expectProblem(late, 409, 'suspension_resolved');
      }
      expect(await chat.stop(run.sessionId, run.executionId), 'a second Stop').to.deep.equal({
        cancelRequested: false,
      });
      const count = cluster.tools.callsOf('act').length;
      expect((await chat.turn(unique('next'), { sessionId: run.sessionId })).status).to.equal('success');
      expect(cluster.tools.callsOf('act')).to.have.length(count);
    });
  }

  it('frees the queue at once: what was pending starts, with a history that says what was cancelled', async () => {
    const run = await waiting();
    const next = unique('pending');
    cluster.model.on(next, say('My turn'));
    const stream = await chat.send(next, { sessionId: run.sessionId, main: 1 });
    await stream.until('message-queued');
    await chat.stop(run.sessionId, run.executionId);
    await stream.until('execution-started', 2_000);
    await stream.all();
    const messages = (await cluster.model.request(next)).body.messages ?? [];
    const results = messages.filter((message) => message.role === 'tool').map((message) => textOf(message.content));
    expect(results).to.have.length(3);
    expect(results[0])
      .to.match(/cancelled/i)
      .and.to.contain('it was not run');
    expect(results[1]).to.equal('looked');
    expect(results[2])
      .to.match(/cancelled/i)
      .and.to.contain('it was not run');
  });

  it('many Stops at once, from both mains: one of them did it', async () => {
    const run = await waiting();
    const answers = await Promise.all([0, 1, 0, 1].map((main) => chat.stop(run.sessionId, run.executionId, main)));
    expect(answers.filter((one) => one.cancelRequested)).to.have.length(1);
  });

  it('racing the last answer: either it is cancelled, or the run went on and Stop says false', async () => {
    const rounds = process.env.TURNKEEP_LONG ? 200 : 10;
    for (let round = 0; round < rounds; round++) {
      const run = await waiting();
      await run.accept(run.id(0), APPROVE);
      const count = cluster.tools.callsOf('act').length;
      const [answered, stopped] = await Promise.all([
        run.post({ toolCallId: run.id(1), resumeData: APPROVE }, { main: round % 2 }),
        // From before the acceptance until the continuation runs.
        pause((round % 10) * 4).then(() => chat.stop(run.sessionId, run.executionId, (round + 1) % 2)),
      ]);
      expect(answered.status).to.be.oneOf([202, 409]);
      const rows = await chat.settled(run.sessionId, stopped.cancelRequested ? 1 : 2);
      expect(rows[0]?.status).to.equal(stopped.cancelRequested ? 'cancelled' : 'suspended');
      const next = await chat.turn(unique('next'), { sessionId: run.sessionId });
      expect(next.status).to.equal('success');
      const ran = cluster.tools.callsOf('act').length - count;
      expect(ran).to.equal(stopped.cancelRequested ? 0 : 2);
    }
  });

  it('after its run went on: false, and neither execution is touched', async () => {
    const run = await waiting();
    await run.accept(run.id(0), APPROVE);
    await run.resume(run.id(1), APPROVE);
    for (const main of [0, 1]) {
      expect(await chat.stop(run.sessionId, run.executionId, main)).to.deep.equal({ cancelRequested: false });
    }
    const rows = await chat.executions(run.sessionId);
    expect(rows.map((row) => row.status)).to.deep.equal(['suspended', 'success']);
  });

  it('by somebody else, 404; by a viewer, 403: nothing changes', async () => {
    const run = await waiting();
    const other = await cluster.newUser();
    await cluster.addMember(chat.user, chat.projectId, other, 'admin');
    const path = chat.path(`/${run.sessionId}/executions/${run.executionId}`);
    expectProblem(await other.on().delete(path), 404, 'not_found');
    await cluster.addMember(chat.user, chat.projectId, other, 'viewer');
    expectProblem(await other.on().delete(path), 403, 'forbidden');
    expect((await chat.transcript(run.sessionId)).openSuspensions).to.have.length(2);
  });

  it('a Stop that was committed before the step suspends wins: cancelled, without a card', async () => {
    const worker = await cluster.startPointedWorker();
    const others = cluster.workers.filter((one) => one !== worker);
    for (const one of others) one.pause();
    try {
      const held = await worker.hold('suspending');
      const marker = unique('stopped-before');
      cluster.model.on(marker, callTool('act', {}));
      const stream = await chat.send(marker);
      const { sessionId, executionId } = (await stream.until('execution-started')).data;
      await held.reached();
      await chat.stop(String(sessionId), String(executionId));
      held.release();
      const events = await stream.all();
      expect(events.at(-1)?.data).to.include({ status: 'cancelled' });
      expect(events.map((event) => event.data.type)).not.to.include('tool-call-suspended');
      const transcript = await chat.transcript(String(sessionId));
      expect(transcript.openSuspensions).to.deep.equal([]);
      expect(transcript.messages.at(-1)?.content.map((part) => part.state)).to.deep.equal(['cancelled']);
    } finally {
      for (const one of others) one.resume();
    }
  });

  it('between the last answer and the continuation: true, and the answer’s stream ends with `done` cancelled', async () => {
    const runs = [await waiting(), await waiting()];
    await Promise.all(cluster.workers.splice(0).map((worker) => worker.stop()));
    for (const [main, run] of runs.entries()) {
      await run.accept(run.id(0), APPROVE);
      const headers = { 'idempotency-key': unique('key') };
      const stream = await run.answer(run.id(1), APPROVE, { main, headers });
      expect((await stream.until('resume-accepted')).data).to.include({ remaining: 0 });
      const { sessions } = (await chat.http().expect(200, chat.path())).json<{
        sessions: { id: string; status: string }[];
      }>();
      expect(sessions.find((session) => session.id === run.sessionId)?.status).to.equal('queued');
      expect(await chat.stop(run.sessionId, run.executionId, 1 - main)).to.deep.equal({ cancelRequested: true });
      const resumed = await readResumed(stream);
      expect(resumed.of('done')[0]).to.include({ status: 'cancelled', executionId: run.executionId });
      const repeated = await readResumed(await run.answer(run.id(1), APPROVE, { main: 1 - main, headers }));
      expect(repeated.of('done')[0]).to.include({ status: 'cancelled' });
      expect(await states(run)).to.deep.equal(['cancelled', 'done', 'cancelled']);
    }
    const count = cluster.tools.callsOf('act').length;
    await cluster.startWorker();
    for (const run of runs) {
      expect((await chat.turn(unique('next'), { sessionId: run.sessionId })).status).to.equal('success');
      expect((await chat.executions(run.sessionId))[0]?.status).to.equal('cancelled');
    }
    expect(cluster.tools.callsOf('act')).to.have.length(count);
  });
});
