import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { callTool, reply, say } from '../support/model-script.js';
import { expectProblem } from '../support/problem.js';
import { APPROVE, DENY, readResumed, SuspendedRun, suspend } from '../support/resume.js';
import { useCluster } from '../support/suite.js';
import { answer } from '../support/tool-server.js';

describe('resume: what is accepted and what is refused (sections 2, 4, 5 and 8)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat({ tools: [cluster.httpTool('act', { requireApproval: true })] });
    cluster.tools.on('act', answer('acted'));
  });

  async function waiting(calls = 1): Promise<SuspendedRun> {
    const marker = unique('waiting');
    const all = Array.from({ length: calls }, (_, n) => callTool('act', { n, marker }));
    cluster.model.on(marker, reply(...all), say('on'));
    return suspend(chat, marker);
  }

  /** How often the tool ran for a run. */
  function ran(run: SuspendedRun): number {
    const ids = run.calls.map((call) => call.toolCallId);
    return cluster.tools.callsOf('act').filter((call) => ids.includes(String(call.headers['idempotency-key']))).length;
  }

  /** The run in the hands of somebody else. */
  const asOther = (run: SuspendedRun, other: Chat) => new SuspendedRun(other, run.turn);

  it('202 with the fields of `resume-accepted` for Accept: application/json', async () => {
    const run = await waiting();
    expect(await run.accept(run.id(), APPROVE, { main: 1 })).to.deep.equal({
      sessionId: run.sessionId,
      runId: run.runId,
      toolCallId: run.id(),
      remaining: 0,
    });
    const rows = await chat.settled(run.sessionId, 2);
    expect(rows.map((row) => row.status)).to.deep.equal(['suspended', 'success']);
    expect(ran(run)).to.equal(1);
  });

  it('404 for everybody but the owner, with the same body as for a run that never was; admins included', async () => {
    const run = await waiting();
    const member = await cluster.newUser();
    await cluster.addMember(chat.user, chat.projectId, member, 'admin');
    const data = { toolCallId: run.id(), resumeData: APPROVE };
    const theirs = await asOther(run, chat.as(member)).post(data);
    expectProblem(theirs, 404, 'not_found');
    const unknown = await run.post({ ...data, runId: randomUUID() });
    expect(theirs.text).to.equal(unknown.text);
    const stranger = await cluster.newUser();
    expectProblem(await asOther(run, chat.as(stranger)).post(data), 404, 'not_found');
    expectProblem(await run.post({ ...data, toolCallId: 'call_none' }), 404, 'not_found');
    const other = await waiting();
    expectProblem(await run.post({ ...data, toolCallId: other.id() }), 404, 'not_found');
    expect((await chat.transcript(run.sessionId)).openSuspensions).to.have.length(1);
  });

  it('404 before the body is looked at, where the run is not yours; 401 and 403 before both', async () => {
    const run = await waiting();
    const member = await cluster.newUser();
    await cluster.addMember(chat.user, chat.projectId, member, 'user');
    expectProblem(await asOther(run, chat.as(member)).post({ nonsense: true }), 404, 'not_found');
    await cluster.addMember(chat.user, chat.projectId, member, 'viewer');
    expectProblem(await asOther(run, chat.as(member)).post({ nonsense: true }), 403, 'forbidden');
    expectProblem(await cluster.anonymous().post(chat.path('/resume'), {}), 401, 'unauthorized');
  });

  it('400 for data of the wrong kind or shape, naming the place; nothing changes', async () => {
    const run = await waiting();
    const wrong: [unknown, RegExp][] = [
      [{ answer: 'yes' }, /^\/resumeData/],
      [{ approved: 'yes' }, /^\/resumeData/],
      [{}, /^\/resumeData/],
      [{ approved: true, answer: 'both' }, /^\/resumeData/],
      [{ approved: false, reason: 'a\u0000b' }, /^\/resumeData\/reason/],
      [{ approved: false, reason: 'x'.repeat(10_001) }, /^\/resumeData/],
      [null, /^\/resumeData/],
    ];
    for (const [resumeData, pointer] of wrong) {
      const response = await run.post({ toolCallId: run.id(), resumeData });
      expectProblem(response, 400, 'invalid_request');
      const { errors } = response.json<{ errors?: { pointer: string }[] }>();
      expect(errors?.[0]?.pointer, JSON.stringify(resumeData)?.slice(0, 60)).to.match(pointer);
    }
    expectProblem(await run.post({ resumeData: APPROVE }), 400, 'invalid_request');
    expectProblem(await run.post({ toolCallId: run.id(), resumeData: APPROVE, runId: 7 }), 400, 'invalid_request');
    expect((await chat.transcript(run.sessionId)).openSuspensions).to.have.length(1);
    expect(ran(run)).to.equal(0);
  });

  it('409 suspension_resolved for a second answer, before and after the run went on, whatever it says', async () => {
    const run = await waiting(2);
    await run.accept(run.id(0), APPROVE);
    for (const data of [APPROVE, DENY]) {
      const again = await run.post({ toolCallId: run.id(0), resumeData: data }, { main: 1 });
      expectProblem(again, 409, 'suspension_resolved');
    }
    await run.resume(run.id(1), APPROVE);
    for (const call of run.calls) {
      const late = await run.post({ toolCallId: call.toolCallId, resumeData: APPROVE });
      expectProblem(late, 409, 'suspension_resolved');
    }
    expect(ran(run)).to.equal(2);
  });

  it('two tabs at once, on two mains, many times: one wins, and the tool runs once', async () => {
    for (let round = 0; round < 5; round++) {
      const run = await waiting();
      const answers = await Promise.all(
        [APPROVE, DENY, APPROVE, DENY].map((resumeData, at) =>
          run.post({ toolCallId: run.id(), resumeData }, { main: at % 2 }),
        ),
      );
      const won = answers.flatMap((one, at) => (one.status === 202 ? [at] : []));
      expect(won, 'how many won').to.have.length(1);
      for (const lost of answers.filter((one) => one.status !== 202)) expectProblem(lost, 409, 'suspension_resolved');
      expect(await chat.settled(run.sessionId, 2)).to.have.length(2);
      expect(ran(run)).to.equal(won[0] === 0 || won[0] === 2 ? 1 : 0);
    }
  });

  it('a tab that closes right after the answer, or in the continuation, ends nothing', async () => {
    for (const when of ['resume-accepted', 'execution-started'] as const) {
      const run = await waiting();
      const stream = await run.answer(run.id(), APPROVE);
      await stream.until(when);
      stream.close();
      const rows = await chat.settled(run.sessionId, 2);
      expect(rows.at(-1)?.status).to.equal('success');
      expect(ran(run)).to.equal(1);
    }
  });

  describe('Idempotency-Key', () => {
    it('the same key again answers as the first did and adds nothing; as a stream, it follows the continuation', async () => {
      const run = await waiting();
      const headers = { 'idempotency-key': unique('key') };
      const first = await run.accept(run.id(), APPROVE, { headers });
      expect(await run.accept(run.id(), APPROVE, { headers, main: 1 })).to.deep.equal(first);
      const stream = await readResumed(await run.answer(run.id(), APPROVE, { headers, main: 1 }));
      expect(stream).to.include({ status: 'success' });
      expect(stream.accepted).to.include({ remaining: 0 });
      expect(await chat.settled(run.sessionId, 2)).to.have.length(2);
      expect(ran(run)).to.equal(1);
    });

    it('20 racing requests on two mains: one acceptance, the same for all', async () => {
      const run = await waiting();
      const headers = { 'idempotency-key': unique('race') };
      const all = await Promise.all(
        Array.from({ length: 20 }, (_, at) => run.accept(run.id(), APPROVE, { headers, main: at % 2 })),
      );
      expect(new Set(all.map((one) => JSON.stringify(one))).size).to.equal(1);
      await chat.settled(run.sessionId, 2);
      expect(ran(run)).to.equal(1);
    });

    it('another body under the key is 422 idempotency_mismatch; a refusal is not kept', async () => {
      const run = await waiting(2);
      const headers = { 'idempotency-key': unique('body') };
      const wrong = await run.post({ toolCallId: run.id(0), resumeData: { answer: 'x' } }, { headers });
      expectProblem(wrong, 400, 'invalid_request');
      await run.accept(run.id(0), APPROVE, { headers });
      const other = await run.post({ toolCallId: run.id(1), resumeData: APPROVE }, { headers });
      expectProblem(other, 422, 'idempotency_mismatch');
      expect((await chat.transcript(run.sessionId)).openSuspensions).to.have.length(1);
    });
  });

  it('AGENTS_ENABLED=false: resuming answers 404 agents_disabled, reading and Stop work', async () => {
    const run = await waiting();
    const main = cluster.mains.length;
    await cluster.startMain({ AGENTS_ENABLED: 'false' });
    const refused = await run.post({ toolCallId: run.id(), resumeData: APPROVE }, { main });
    expectProblem(refused, 404, 'agents_disabled');
    expect((await chat.transcript(run.sessionId, main)).openSuspensions).to.have.length(1);
    expect(await chat.stop(run.sessionId, run.executionId, main)).to.deep.equal({ cancelRequested: true });
  });

  it('deleting the session, or the agent, closes what waits: 404 from then on', async () => {
    const run = await waiting();
    await chat.http().expect(200, chat.path(`/${run.sessionId}`), { method: 'DELETE' });
    expectProblem(await run.post({ toolCallId: run.id(), resumeData: APPROVE }), 404, 'not_found');
    const agentId = await cluster.newAgent(chat.user, chat.projectId, {
      tools: [cluster.httpTool('act', { requireApproval: true })],
    });
    const other = new Chat(chat.user, chat.projectId, agentId);
    const marker = unique('agent-gone');
    cluster.model.on(marker, callTool('act', {}));
    const doomed = await suspend(other, marker);
    const path = `/projects/${chat.projectId}/agents/v2/${agentId}`;
    expect((await chat.http(1).delete(path)).status).to.be.oneOf([200, 204]);
    expectProblem(await doomed.post({ toolCallId: doomed.id(), resumeData: APPROVE }), 404, 'not_found');
    const rows = await cluster.db.query<{ status: string }>('select status from checkpoints where session_id = $1', [
      doomed.sessionId,
    ]);
    expect(rows).to.deep.equal([{ status: 'cancelled' }]);
  });
});
