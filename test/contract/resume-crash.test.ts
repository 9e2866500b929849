import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { startCluster } from '../support/cluster.js';
import { chainOf, childOf } from '../support/delegation.js';
import { unique } from '../support/environment.js';
import { gate } from '../support/gate.js';
import { textOf } from '../support/model-rules.js';
import { callTool, reply, say } from '../support/model-script.js';
import type { PointedWorker } from '../support/points.js';
import { startRedis } from '../support/redis.js';
import { APPROVE, DENY, SuspendedRun, suspend } from '../support/resume.js';
import { useCluster } from '../support/suite.js';
import { answer, answerAfter } from '../support/tool-server.js';
import { readTurn } from '../support/turn.js';

const LEASE_MS = 1_500;
/** Section 4: an event that reports a commit comes within 3 s of it. Section 9.5: an interruption, 2 s after the lease. */
const BOUND_MS = 3_000;
const INTERRUPTED_MS = LEASE_MS + 2_000 + BOUND_MS;

describe('all that runs is killed while a run is suspended (sections 5 and 9)', function () {
  this.timeout(90_000);

  it('an approval is given afterwards: each tool runs once, and nothing of the state was in Redis', async () => {
    const redis = await startRedis();
    const cluster = await startCluster({ redisUrl: redis.url, env: { LEASE_MS: String(LEASE_MS) } });
    cluster.defer(() => redis.stop());
    try {
      cluster.tools.on('act', answer('acted'));
      const tools = [cluster.httpTool('act', { requireApproval: true }), { type: 'question', name: 'ask_user' }];
      const chat = await chainOf(cluster, { tools }, { tools });
      const [marker, task] = [unique('parent'), unique('task')];
      const step = reply(
        callTool('act', { n: 1 }),
        callTool('deeper', { task }),
        callTool('ask_user', { question: '?' }),
      );
      cluster.model.on(marker, step, say('All done.'));
      cluster.model.on(task, callTool('act', { n: 2 }), say('Child done.'));
      const run = await suspend(chat, marker);
      const pending = unique('pending');
      await chat.accept(pending, { sessionId: run.sessionId });

      await killAll(cluster.mains.splice(0), cluster.workers.splice(0));
      await redis.restart('empty');
      await Promise.all([cluster.startMain(), cluster.startMain()]);
      await run.accept(run.id(0), APPROVE);
      await run.accept(run.id(1), APPROVE, { main: 1 });
      // The last answer is accepted without a Redis, and survives the main that took it.
      await redis.kill();
      await run.accept(run.id(2), { answer: 'yes' });
      expect(cluster.tools.callsOf('act')).to.have.length(0);
      await killAll(cluster.mains.splice(0));
      await redis.restart('empty');
      await Promise.all([cluster.startMain(), cluster.startMain(), cluster.startWorker(), cluster.startWorker()]);

      const rows = await chat.settled(run.sessionId, 3);
      expect(rows.map((row) => row.status)).to.deep.equal(['suspended', 'success', 'success']);
      expect(rows[1]?.runId).to.equal(run.runId);
      expect(cluster.tools.callsOf('act').map((call) => call.body)).to.deep.equal([{ n: 1 }, { n: 2 }]);
      const { messages } = await chat.transcript(run.sessionId);
      expect(messages[1]?.content.map((part) => part.output ?? part.text)).to.deep.equal([
        'acted',
        'Child done.',
        'yes',
        'All done.',
      ]);
      expect(childOf(messages[1]?.content[1]).toolCalls.map((call) => call.state)).to.deep.equal(['done']);
    } finally {
      await cluster.stop();
    }
  });
});

describe('a worker that dies while a run suspends or goes on (sections 4, 5 and 9)', function () {
  this.timeout(60_000);
  const cluster = useCluster({ workers: 0, env: { LEASE_MS: String(LEASE_MS) } });
  let chat: Chat;
  let victim: PointedWorker;
  before(async () => {
    chat = await cluster.newChat({ tools: [cluster.httpTool('act', { requireApproval: true })] });
    cluster.tools.on('act', answer('acted'));
  });
  beforeEach(async () => {
    victim = await cluster.startPointedWorker();
  });
  afterEach(() => killAll(cluster.workers.splice(0)));

  async function waiting(): Promise<{ marker: string; run: SuspendedRun; ran: () => number }> {
    const marker = unique('waiting');
    cluster.model.on(marker, reply(callTool('act', { n: 1 }), callTool('act', { n: 2 })), say('on'));
    const count = cluster.tools.callsOf('act').length;
    const run = await suspend(chat, marker);
    return { marker, run, ran: () => cluster.tools.callsOf('act').length - count };
  }

  /** What the first call is recorded as, and whether the tool has run by then. */
  const points = {
    claimed: { ran: 0, state: 'error' },
    registered: { ran: 0, state: 'error', long: true },
    'before-tools': { ran: 0, state: 'error' },
    'after-tools': { ran: 1, state: /done|error/ },
    boundary: { ran: 1, state: /done|error/, long: true },
    'before-model': { ran: 1, state: /done|error/ },
    'after-model': { ran: 1, state: 'done', long: true },
    settling: { ran: 1, state: 'done', long: true },
  } as const;
  for (const [point, expected] of Object.entries(points)) {
    if ('long' in expected && !process.env.TURNKEEP_LONG) continue;
    it(`at '${point}' of a continuation: interrupted, nothing is done twice, the session goes on`, async () => {
      const { marker, run, ran } = await waiting();
      await run.accept(run.id(1), { ...DENY, reason: 'not that one' });
      await victim.killAt(point as keyof typeof points);
      const stream = await run.answer(run.id(0), APPROVE);
      await victim.exit;
      expect((await stream.until('execution-started', BOUND_MS)).data.runId).to.equal(run.runId);
      const requests = cluster.model.requestsFor(marker).length;
      await cluster.startWorker();
      const done = (await stream.until('done', INTERRUPTED_MS)).data;
      expect(done.status).to.equal('interrupted');
      expect(await stream.end()).to.equal('clean');
      const next = unique('next');
      expect((await chat.turn(next, { sessionId: run.sessionId })).status).to.equal('success');
      expect(ran(), 'runs of the tool').to.equal(expected.ran);
      expect(cluster.model.requestsFor(marker), 'requests to the model').to.have.length(requests);

      const rows = await chat.executions(run.sessionId);
      expect(rows.map((row) => row.status)).to.deep.equal(['suspended', 'interrupted', 'success']);
      expect(rows[1]?.error?.code).to.equal('interrupted');
      const { messages, openSuspensions } = await chat.transcript(run.sessionId);
      expect(openSuspensions).to.deep.equal([]);
      expect(messages[1]).to.include({ status: 'interrupted' });
      const [approved, denied] = messages[1]?.content ?? [];
      expect(approved?.state).to.match(new RegExp(`^(${source(expected.state)})$`));
      if (approved?.state === 'error')
        expect(approved.error).to.equal(`interrupted; it ${expected.ran > 0 ? 'may have' : 'was not'} run`);
      expect(denied?.state).to.be.oneOf(['denied', 'error']);
      if (denied?.state === 'error') expect(denied.error).to.match(/interrupted; it was not run/);
      const told = (await cluster.model.request(next)).body.messages ?? [];
      const results = told.filter((message) => message.role === 'tool').map((message) => textOf(message.content));
      expect(results, 'what the next turn is told of both').to.have.length(2);
    });
  }

  it('in the tool itself: it is not called again, and is said to have perhaps run', async () => {
    const { run, ran } = await waiting();
    const held = gate();
    cluster.tools.on('act', answerAfter(held, 'acted'));
    await run.accept(run.id(1), DENY);
    const stream = await run.answer(run.id(0), APPROVE, { main: 1 });
    await held.reached();
    await victim.kill();
    cluster.tools.on('act', answer('acted'));
    await cluster.startWorker();
    expect((await stream.until('done', INTERRUPTED_MS)).data.status).to.equal('interrupted');
    expect((await chat.turn(unique('next'), { sessionId: run.sessionId })).status).to.equal('success');
    expect(ran()).to.equal(1);
    const { messages } = await chat.transcript(run.sessionId);
    expect(messages[1]?.content[0]).to.include({ state: 'error', error: 'interrupted; it may have run' });
  });

  it('a main that is told to stop while an accepted answer waits for a worker: its stream ends cleanly, the run goes on', async () => {
    const { run, ran } = await waiting();
    await run.accept(run.id(1), DENY);
    await victim.kill();
    const main = cluster.mains.length;
    const stopping = await cluster.startMain();
    const stream = await run.answer(run.id(0), APPROVE, { main });
    await stream.until('resume-accepted');
    await stopping.stop();
    expect(await stream.end()).to.equal('clean');
    expect(stream.seen).to.have.length(1);
    await cluster.startWorker();
    const rows = await chat.settled(run.sessionId, 2);
    expect(rows.at(-1)?.status).to.equal('success');
    expect(ran()).to.equal(1);
  });

  it('right after the suspension was committed: the cards and `done` still come, and an approval works', async () => {
    const marker = unique('announced');
    cluster.model.on(marker, callTool('act', { n: 1 }), say('on'));
    await victim.killAt('settled');
    const stream = await chat.send(marker);
    await victim.exit;
    await stream.until('tool-call-suspended', BOUND_MS);
    const turn = await readTurn(stream);
    expect(turn.status).to.equal('suspended');
    await cluster.startWorker();
    const run = new SuspendedRun(chat, turn);
    const count = cluster.tools.callsOf('act').length;
    expect((await run.resume(run.id(), APPROVE)).status).to.equal('success');
    expect(cluster.tools.callsOf('act')).to.have.length(count + 1);
  });

  it('right before that: interrupted, without a card, and the session is free', async () => {
    const marker = unique('not-suspended');
    cluster.model.on(marker, callTool('act', { n: 1 }));
    await victim.killAt('suspending');
    const stream = await chat.send(marker);
    await victim.exit;
    await cluster.startWorker();
    const turn = await readTurn(stream);
    expect(turn.status).to.equal('interrupted');
    expect(turn.of('tool-call-suspended')).to.deep.equal([]);
    const { openSuspensions } = await chat.transcript(turn.sessionId);
    expect(openSuspensions).to.deep.equal([]);
    expect((await chat.turn(unique('next'), { sessionId: turn.sessionId })).status).to.equal('success');
  });
});

if (process.env.TURNKEEP_LONG) {
  describe('many runs that go on while workers die at random (sections 5 and 9)', function () {
    this.timeout(300_000);
    // Forty at once on two cores: a short lease would run out by itself.
    const cluster = useCluster({ workers: 2, env: { LEASE_MS: '4000' } });

    it('each approved tool runs once at most, each session goes on, and what was not finished says so', async () => {
      cluster.tools.on('act', (call, response) => void setTimeout(() => answer('acted')(call, response), 20));
      const tools = [cluster.httpTool('act', { requireApproval: true })];
      const chat = await chainOf(cluster, { tools }, { tools });
      const runs = await Promise.all(
        Array.from({ length: 40 }, async () => {
          const [marker, task] = [unique('many'), unique('task')];
          cluster.model.on(
            marker,
            reply(callTool('act', {}), callTool('deeper', { task }), callTool('act', {})),
            say('on'),
          );
          cluster.model.on(task, callTool('act', {}), say('child'));
          return suspend(chat, marker);
        }),
      );
      const answering = Promise.all(
        runs.map(async (run, at) => {
          for (const call of run.calls) await run.accept(call.toolCallId, APPROVE, { main: at % 2 });
        }),
      );
      for (let round = 0; round < 6; round++) {
        const [victim] = cluster.workers.splice(0, 1);
        await Promise.all([victim?.kill(), cluster.startWorker()]);
      }
      await answering;
      const statuses: Record<string, number> = {};
      for (const run of runs) {
        const rows = await chat.settled(run.sessionId, 2);
        const last = String(rows.at(-1)?.status);
        expect(last).to.be.oneOf(['success', 'interrupted']);
        statuses[last] = (statuses[last] ?? 0) + 1;
        for (const { toolCallId } of run.calls) {
          const ran = cluster.tools.callsOf('act').filter((call) => call.headers['idempotency-key'] === toolCallId);
          expect(ran.length, `runs of ${toolCallId}`).to.be.at.most(1);
          if (last === 'success') expect(ran).to.have.length(1);
        }
        const { messages } = await chat.transcript(run.sessionId);
        const states = messages[1]?.content.flatMap((part) => part.state ?? []);
        for (const state of states ?? []) expect(state).to.be.oneOf(last === 'success' ? ['done'] : ['done', 'error']);
        expect((await chat.turn(unique('next'), { sessionId: run.sessionId })).status).to.equal('success');
      }
      expect(statuses.interrupted, 'runs that a death met').to.be.greaterThan(0);
    });
  });
}

function source(state: string | RegExp): string {
  return typeof state === 'string' ? state : state.source;
}

async function killAll(...lists: { kill(): Promise<unknown>; alive: boolean }[][]): Promise<void> {
  await Promise.all(lists.flat().map((one) => (one.alive ? one.kill() : undefined)));
}
