import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { insertFixture, saveFixture } from '../support/checkpoint-fixture.js';
import { never as neverHappens } from '../support/deadline.js';
import { chainOf, childOf } from '../support/delegation.js';
import { unique } from '../support/environment.js';
import { textOf } from '../support/model-rules.js';
import { callTool, reply, say, think } from '../support/model-script.js';
import { APPROVE, type SuspendedRun, suspend } from '../support/resume.js';
import { useCluster } from '../support/suite.js';
import { answer, big } from '../support/tool-server.js';

/** How long a worker would need at most to take what it can take: section 9.3. */
const PROMPT_MS = 2_000;

describe('checkpoints (sections 5 and 9)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    cluster.tools.on('act', answer('acted'));
    cluster.tools.on('look', answer('looked'));
    cluster.tools.on('much', big(5 * 1024 * 1024));
    const limits = { maxSteps: 20, maxDurationMs: 600_000, maxToolOutputChars: 10_000_000 };
    const tools = [
      cluster.httpTool('act', { requireApproval: true }),
      cluster.httpTool('look'),
      cluster.httpTool('much'),
      { type: 'question', name: 'ask_user' },
    ];
    chat = await chainOf(cluster, { tools, limits }, { tools });
  });

  async function waiting(): Promise<SuspendedRun> {
    const marker = unique('waiting');
    cluster.model.on(marker, callTool('act', {}), say('on'));
    return suspend(chat, marker);
  }

  describe('of every version that was ever written', () => {
    // `TURNKEEP_WRITE_FIXTURE=1` writes the newest version's again, from a real run.
    const scripts = (...last: Parameters<typeof reply>) => {
      const hand = callTool('deeper', { task: 'the fixture’s task' });
      cluster.model.on(
        'the fixture’s message',
        reply(callTool('look', { q: 1 }), hand, callTool('ask_user', { question: 'Which?' })),
        ...last,
      );
      const inside = reply(think('hm'), say('May I 😀? '), callTool('look', { q: 2 }), callTool('act', { n: 1 }));
      cluster.model.on('the fixture’s task', inside, ...last);
    };

    before(async () => {
      if (process.env.TURNKEEP_WRITE_FIXTURE !== '1') return;
      scripts();
      const run = await suspend(chat, 'the fixture’s message');
      await saveFixture(cluster, chat, run.sessionId, run.runId);
      await chat.http().expect(200, chat.path(`/${run.sessionId}`), { method: 'DELETE' });
      await cluster.db.query('delete from sessions where id = $1', [run.sessionId]);
    });

    for (const version of [1]) {
      it(`version ${version}: a delegate that waits inside, and a question, go on where they were`, async () => {
        const { sessionId, runId, calls } = await insertFixture(cluster, chat, version);
        expect(calls.map((call) => call.kind)).to.deep.equal(['approval', 'question']);
        cluster.model.on('the fixture’s message', say('All done.'));
        cluster.model.on('the fixture’s task', say('Did it.'));
        const shown = await chat.transcript(sessionId);
        expect(shown.openSuspensions).to.have.length(2);
        const [count, looks] = ['act', 'look'].map((tool) => cluster.tools.callsOf(tool).length);
        const data = [APPROVE, { answer: 'the blue one' }];
        for (const [at, call] of calls.entries()) {
          const body = { runId, toolCallId: call.id, resumeData: data[at] };
          const headers = { accept: 'application/json' };
          expect((await chat.http(at).post(chat.path('/resume'), body, { headers })).status).to.equal(202);
        }
        const rows = await chat.settled(sessionId, 2);
        expect(rows.map((row) => row.status)).to.deep.equal(['suspended', 'success']);
        expect(cluster.tools.callsOf('act')).to.have.length(Number(count) + 1);
        expect(cluster.tools.callsOf('look')).to.have.length(Number(looks));
        const { messages } = await chat.transcript(sessionId);
        const parts = messages[1]?.content ?? [];
        expect(parts.map((part) => part.output ?? part.text)).to.deep.equal([
          'looked',
          'Did it.',
          'the blue one',
          'All done.',
        ]);
        const child = childOf(parts[1]);
        expect(child).to.deep.include({ text: 'May I 😀? Did it.', reasoning: 'hm' });
        expect(child.toolCalls.map((call) => call.state)).to.deep.equal(['done', 'done']);
        const told = (await cluster.model.request('the fixture’s message')).body.messages?.slice(-3) ?? [];
        expect(told.map((message) => textOf(message.content))).to.deep.equal(['looked', 'Did it.', 'the blue one']);
      });
    }
  });

  describe('that cannot be read any more', () => {
    for (const [what, change] of [
      ['no JSON', `state = '\\x00ff00'`],
      ['JSON of another shape', `state = convert_to('{"root":{"messages":[]},"steps":1}', 'utf8')`],
      [
        'a call without what it needs',
        `state = convert_to(replace(convert_from(state, 'utf8'), '"callId"', '"id"'), 'utf8')`,
      ],
      ['a version that is gone', 'version = 0'],
    ] as const) {
      it(`${what}: the continuation ends with checkpoint_unreadable, nothing runs, and the session is free`, async () => {
        const run = await waiting();
        await cluster.db.query(`update checkpoints set ${change} where run_id = $1`, [run.runId]);
        const count = cluster.tools.callsOf('act').length;
        const resumed = await run.resume(run.id(), APPROVE);
        expect(resumed.status).to.equal('error');
        expect(resumed.error?.code).to.equal('checkpoint_unreadable');
        expect(cluster.tools.callsOf('act')).to.have.length(count);
        const { messages, openSuspensions } = await chat.transcript(run.sessionId);
        expect(openSuspensions).to.deep.equal([]);
        expect(messages[1]?.content.map((part) => part.state)).to.deep.equal(['error']);
        expect((await chat.turn(unique('next'), { sessionId: run.sessionId })).status).to.equal('success');
      });
    }
  });

  it('of a newer release is left to its workers: accepted, stoppable, and not touched by this one’s', async () => {
    const [run, other] = [await waiting(), await waiting()];
    await cluster.db.query('update checkpoints set version = version + 1 where run_id = any($1)', [
      [run.runId, other.runId],
    ]);
    await run.accept(run.id(), APPROVE);
    await other.accept(other.id(), APPROVE);
    const next = unique('next');
    await chat.accept(next, { sessionId: run.sessionId });
    const moved = async () => (await chat.executions(run.sessionId)).length > 1;
    await neverHappens('this release touches it', moved, PROMPT_MS);
    expect(await chat.stop(other.sessionId, other.executionId)).to.deep.equal({ cancelRequested: true });
    expect((await chat.turn(unique('free'), { sessionId: other.sessionId })).status).to.equal('success');
    await cluster.db.query('update checkpoints set version = version - 1 where run_id = $1', [run.runId]);
    const rows = await chat.settled(run.sessionId, 3);
    expect(rows.map((row) => row.status)).to.deep.equal(['suspended', 'success', 'success']);
    expect(rows[1]?.runId).to.equal(run.runId);
  });

  it('of 5 MB works', async () => {
    const marker = unique('much');
    cluster.model.on(marker, callTool('much', {}), callTool('act', {}), say('Still here.'));
    const run = await suspend(chat, marker);
    const [row] = await cluster.db.query<{ bytes: number }>(
      'select length(state) as bytes from checkpoints where run_id = $1',
      [run.runId],
    );
    expect(row?.bytes).to.be.greaterThan(5 * 1024 * 1024);
    const resumed = await run.resume(run.id(), APPROVE, { main: 1 });
    expect(resumed).to.include({ status: 'success', text: 'Still here.' });
    const told = (await cluster.model.request(marker, 3)).body.messages ?? [];
    const lengths = told.filter((message) => message.role === 'tool').map((message) => textOf(message.content).length);
    expect(lengths[0]).to.be.at.least(5 * 1024 * 1024);
    const rows = await cluster.db.query<{ state: Buffer | null }>('select state from checkpoints where run_id = $1', [
      run.runId,
    ]);
    expect(rows[0]?.state, 'kept after it was used').to.equal(null);
  });
});
