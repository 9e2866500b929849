import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { gate } from '../support/gate.js';
import { textOf } from '../support/model-rules.js';
import { callTool, reply, say, think } from '../support/model-script.js';
import { APPROVE, DENY, suspend } from '../support/resume.js';
import { useCluster } from '../support/suite.js';
import { answer, answerAfter } from '../support/tool-server.js';

describe('approvals (sections 3 and 5)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat({
      tools: [cluster.httpTool('send_mail', { requireApproval: true }), cluster.httpTool('look')],
    });
    cluster.tools.on('send_mail', answer({ sent: true }));
    cluster.tools.on('look', answer('looked'));
  });

  /** The tool message of the newest request for `marker`. */
  async function told(marker: string, count = 2): Promise<string[]> {
    const messages = (await cluster.model.request(marker, count)).body.messages ?? [];
    const results = messages.filter((message) => message.role === 'tool');
    return results.map((message) => textOf(message.content));
  }

  async function partsOf(sessionId: string, main = 0) {
    const { messages } = await chat.transcript(sessionId, main);
    return messages.filter((message) => message.role === 'assistant');
  }

  it('suspends the run: each call is told after all else, then `done` with status suspended', async () => {
    const marker = unique('suspends');
    cluster.model.on(marker, reply(think('hm'), say('May I?'), callTool('send_mail', { to: 'ü@x' })).withUsage(7, 3));
    const run = await suspend(chat, marker);
    expect(run.turn.types.slice(1)).to.deep.equal([
      'execution-started',
      'start-step',
      'reasoning-start',
      'reasoning-delta',
      'reasoning-end',
      'text-start',
      'text-delta',
      'tool-input-start',
      'tool-input-delta',
      'text-end',
      'tool-call',
      'finish-step',
      'tool-call-suspended',
      'done',
    ]);
    const call = run.turn.of('tool-call')[0];
    expect(run.calls).to.deep.equal([
      {
        type: 'tool-call-suspended',
        toolCallId: call?.toolCallId,
        toolName: 'send_mail',
        runId: run.runId,
        input: { to: 'ü@x' },
        kind: 'approval',
      },
    ]);
    expect(run.turn.of('done')[0]).to.deep.equal({
      type: 'done',
      sessionId: run.sessionId,
      executionId: run.executionId,
      status: 'suspended',
      usage: { inputTokens: 7, outputTokens: 3 },
    });
    expect(cluster.tools.callsOf('send_mail')).to.have.length(0);
  });

  it('shows what waits in the transcript, the executions and the list of sessions', async () => {
    const marker = unique('shows');
    cluster.model.on(marker, callTool('send_mail', { n: 1 }));
    const run = await suspend(chat, marker);
    const transcript = await chat.transcript(run.sessionId, 1);
    expect(transcript.openSuspensions).to.deep.equal([
      {
        runId: run.runId,
        executionId: run.executionId,
        toolCallId: run.id(),
        toolName: 'send_mail',
        kind: 'approval',
        input: { n: 1 },
      },
    ]);
    expect(transcript.activeExecutionId).to.equal(null);
    const assistant = transcript.messages.at(-1);
    expect(assistant).to.include({ status: 'suspended', executionId: run.executionId });
    expect(assistant?.content).to.deep.equal([
      { type: 'tool-call', toolCallId: run.id(), toolName: 'send_mail', input: { n: 1 }, state: 'suspended' },
    ]);
    const [row] = await chat.executions(run.sessionId);
    expect(row).to.include({ status: 'suspended', runId: run.runId, error: null });
    expect(row?.finishedAt).to.be.a('string');
    const { sessions } = (await chat.http().expect(200, chat.path())).json<{
      sessions: { id: string; status: string }[];
    }>();
    expect(sessions.find((session) => session.id === run.sessionId)?.status).to.equal('suspended');
    expect((await chat.queue(run.sessionId)).steerableExecutionId).to.equal(null);
  });

  it('approved: the tool runs then, in a new execution of the same run, on whichever main', async () => {
    const marker = unique('approved');
    cluster.model.on(marker, callTool('send_mail', { n: 2 }).withUsage(5, 1), say('Sent.').withUsage(11, 2));
    const run = await suspend(chat, marker);
    const count = cluster.tools.callsOf('send_mail').length;
    const resumed = await run.resume(run.id(), APPROVE, { main: 1 });
    expect(resumed.accepted).to.deep.equal({
      type: 'resume-accepted',
      sessionId: run.sessionId,
      runId: run.runId,
      toolCallId: run.id(),
      remaining: 0,
    });
    expect(resumed.types.slice(1)).to.deep.equal([
      'execution-started',
      'tool-result',
      'start-step',
      'text-start',
      'text-delta',
      'text-end',
      'finish-step',
      'done',
    ]);
    const started = resumed.of('execution-started')[0];
    expect(started).to.deep.equal({
      type: 'execution-started',
      executionId: resumed.executionId,
      runId: run.runId,
      sessionId: run.sessionId,
    });
    expect(resumed.executionId).not.to.equal(run.executionId);
    expect(resumed).to.include({ status: 'success', text: 'Sent.' });
    expect(resumed.of('tool-result')[0]).to.deep.include({
      toolCallId: run.id(),
      output: { sent: true },
      isError: false,
    });
    const calls = cluster.tools.callsOf('send_mail').slice(count);
    expect(calls.map((call) => call.body)).to.deep.equal([{ n: 2 }]);
    expect(calls[0]?.headers).to.include({
      'x-turnkeep-execution-id': resumed.executionId,
      'idempotency-key': run.id(),
    });
    expect(await told(marker)).to.deep.equal(['{"sent":true}']);
    const rows = await chat.executions(run.sessionId);
    expect(rows.map((row) => [row.status, row.runId, row.usage])).to.deep.equal([
      ['suspended', run.runId, { inputTokens: 5, outputTokens: 1 }],
      ['success', run.runId, { inputTokens: 11, outputTokens: 2 }],
    ]);
  });

  it('is one assistant message with one part for the call, whatever was resumed', async () => {
    const marker = unique('one-message');
    cluster.model.on(marker, reply(say('First. '), callTool('send_mail', { n: 3 })), say('Then.'));
    const run = await suspend(chat, marker);
    const before = await partsOf(run.sessionId);
    const resumed = await run.resume(run.id(), APPROVE);
    const after = await partsOf(run.sessionId, 1);
    expect(after).to.have.length(1);
    expect(after[0]).to.include({ id: before[0]?.id, status: 'success', executionId: resumed.executionId });
    expect(after[0]?.content).to.deep.equal([
      { type: 'text', text: 'First. ' },
      {
        type: 'tool-call',
        toolCallId: run.id(),
        toolName: 'send_mail',
        input: { n: 3 },
        state: 'done',
        output: { sent: true },
      },
      { type: 'text', text: 'Then.' },
    ]);
    const { openSuspensions } = await chat.transcript(run.sessionId);
    expect(openSuspensions).to.deep.equal([]);
  });

  it('is `running` in the transcript while the approved call runs', async () => {
    const marker = unique('runs');
    cluster.model.on(marker, callTool('send_mail', {}), say('ok'));
    const run = await suspend(chat, marker);
    const held = gate();
    cluster.tools.on('send_mail', answerAfter(held, { sent: true }));
    const stream = await run.answer(run.id(), APPROVE);
    await held.reached();
    const { messages, openSuspensions, activeExecutionId } = await chat.transcript(run.sessionId, 1);
    expect(messages.at(-1)?.content.map((part) => part.state)).to.deep.equal(['running']);
    expect(messages.at(-1)).to.include({ status: 'running', executionId: activeExecutionId });
    expect(openSuspensions).to.deep.equal([]);
    held.open();
    await stream.all();
    cluster.tools.on('send_mail', answer({ sent: true }));
  });

  it('denied: the tool is not run, and the model is told, with the reason', async () => {
    const marker = unique('denied');
    cluster.model.on(marker, callTool('send_mail', { n: 4 }), say('Then not.'));
    const run = await suspend(chat, marker);
    const count = cluster.tools.callsOf('send_mail').length;
    const resumed = await run.resume(run.id(), { ...DENY, reason: 'too late in the day' });
    expect(resumed).to.include({ status: 'success', text: 'Then not.' });
    expect(resumed.of('tool-result')[0]).to.include({ toolCallId: run.id(), isError: true });
    expect(cluster.tools.callsOf('send_mail')).to.have.length(count);
    const [result] = await told(marker);
    expect(result).to.contain('denied').and.to.contain('too late in the day');
    const [message] = await partsOf(run.sessionId);
    expect(message?.content[0]).to.include({ state: 'denied' });
    expect(JSON.stringify(message?.content[0])).to.contain('too late in the day');
  });

  it('the next turn is given a valid history that says what became of each call', async () => {
    const first = unique('history-a');
    cluster.model.on(first, callTool('send_mail', { n: 5 }), say('one'));
    const run = await suspend(chat, first);
    await run.resume(run.id(), { ...DENY, reason: 'because of this' });
    const second = unique('history-b');
    cluster.model.on(second, callTool('send_mail', { n: 6 }), say('two'));
    const other = await suspend(chat, second, { sessionId: run.sessionId });
    await other.resume(other.id(), APPROVE);
    const third = unique('history-c');
    expect((await chat.turn(third, { sessionId: run.sessionId })).status).to.equal('success');
    const results = await told(third, 1);
    expect(results).to.have.length(2);
    expect(results[0])
      .to.match(/denied/i)
      .and.to.contain('because of this');
    expect(results[0]?.split('because of this'), 'the reason is said once').to.have.length(2);
    expect(results[1]).to.equal('{"sent":true}');
  });

  it('calls of the step that need nobody run before it suspends', async () => {
    const marker = unique('mixed');
    cluster.model.on(marker, reply(callTool('send_mail', {}), callTool('look', { q: 1 })), say('ok'));
    const run = await suspend(chat, marker);
    const types = run.turn.types;
    expect(types.indexOf('tool-result')).to.be.greaterThan(0).and.below(types.indexOf('tool-call-suspended'));
    expect(run.turn.of('tool-result')[0]).to.include({ toolName: 'look', output: 'looked' });
    expect(run.calls.map((call) => call.toolName)).to.deep.equal(['send_mail']);
    const [message] = await partsOf(run.sessionId);
    expect(message?.content.map((part) => part.state)).to.deep.equal(['suspended', 'done']);
    const count = cluster.tools.callsOf('look').length;
    await run.resume(run.id(), APPROVE);
    expect(cluster.tools.callsOf('look'), 'not run again').to.have.length(count);
    expect(await told(marker)).to.deep.equal(['{"sent":true}', 'looked']);
  });

  it('can suspend again in the continuation, and again', async () => {
    const marker = unique('again');
    const ask = (n: number) => callTool('send_mail', { n });
    cluster.model.on(marker, ask(1), ask(2), ask(3), say('All three.'));
    const count = cluster.tools.callsOf('send_mail').length;
    let run = await suspend(chat, marker);
    for (const n of [2, 3]) {
      const resumed = await run.resume(run.id(), APPROVE, { main: n % 2 });
      expect(resumed.types.slice(-3)).to.deep.equal(['finish-step', 'tool-call-suspended', 'done']);
      run = run.again(resumed);
    }
    expect((await run.resume(run.id(), APPROVE)).text).to.equal('All three.');
    const bodies = cluster.tools
      .callsOf('send_mail')
      .slice(count)
      .map((call) => call.body);
    expect(bodies).to.deep.equal([{ n: 1 }, { n: 2 }, { n: 3 }]);
    const rows = await chat.executions(run.sessionId);
    expect(rows.map((row) => row.status)).to.deep.equal(['suspended', 'suspended', 'suspended', 'success']);
    expect(new Set(rows.map((row) => row.runId)).size).to.equal(1);
    const messages = await partsOf(run.sessionId);
    expect(messages).to.have.length(1);
    expect(messages[0]?.content.map((part) => part.state ?? part.text)).to.deep.equal([
      'done',
      'done',
      'done',
      'All three.',
    ]);
  });

  it('streams the suspended execution to those who follow it, also later', async () => {
    const marker = unique('followed');
    cluster.model.on(marker, callTool('send_mail', {}), say('ok'));
    const run = await suspend(chat, marker);
    const events = await (await chat.follow(run.sessionId, run.executionId, { main: 1 })).all();
    expect(events.slice(-2).map((event) => event.data)).to.deep.equal([run.calls[0], run.turn.of('done')[0]]);
    await cluster.redis.client.flushdb();
    const again = await (await chat.follow(run.sessionId, run.executionId)).all();
    expect(again.map((event) => event.data.type)).to.deep.equal(['snapshot', 'tool-call-suspended', 'done']);
    expect(again.slice(-2).map((event) => event.data)).to.deep.equal([run.calls[0], run.turn.of('done')[0]]);
    expect((await run.resume(run.id(), APPROVE)).status, 'with an empty Redis').to.equal('success');
  });

  it('cuts an input of more than 64 KiB in the event; the whole stands at its own route, by either execution', async () => {
    const marker = unique('long');
    const input = { text: 'ab😀'.repeat(20_000) };
    cluster.model.on(marker, callTool('send_mail', input), say('ok'));
    const run = await suspend(chat, marker);
    expect(run.calls[0]).to.include({ truncated: true });
    expect(JSON.stringify(run.calls[0]).length).to.be.below(65_536);
    const resumed = await run.resume(run.id(), APPROVE);
    expect(cluster.tools.callsOf('send_mail').at(-1)?.body).to.deep.equal(input);
    for (const executionId of [run.executionId, resumed.executionId]) {
      const path = chat.path(`/${run.sessionId}/executions/${executionId}/tool-calls/${run.id()}`);
      expect((await chat.http(1).expect(200, path)).json().input).to.deep.equal(input);
    }
  });
});
