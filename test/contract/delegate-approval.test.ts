import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { chainOf, childOf, chunksOf, joined } from '../support/delegation.js';
import { unique } from '../support/environment.js';
import { textOf } from '../support/model-rules.js';
import { callTool, refuse, reply, say, think } from '../support/model-script.js';
import { expectProblem } from '../support/problem.js';
import { APPROVE, DENY, suspend } from '../support/resume.js';
import { useCluster } from '../support/suite.js';
import { answer } from '../support/tool-server.js';

interface Open {
  toolCallId: string;
  parentToolCallId?: string;
}

describe('approvals and questions inside delegates (section 5)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    cluster.tools.on('act', (call, response) => answer({ did: call.body })(call, response));
    cluster.tools.on('look', answer('looked'));
    chat = await chainOf(cluster, { tools: own() }, { tools: own() });
  });
  const own = () => [
    cluster.httpTool('act', { requireApproval: true }),
    cluster.httpTool('look'),
    { type: 'question', name: 'ask_user' },
  ];

  async function waitingInside(...then: Parameters<typeof reply>) {
    const [marker, task] = [unique('parent'), unique('task')];
    cluster.model.on(marker, callTool('deeper', { task }), say('Done.'));
    cluster.model.on(
      task,
      reply(say('May I? '), callTool('act', { n: 1 })),
      ...(then.length > 0 ? then : [say('Did.')]),
    );
    return { marker, task, run: await suspend(chat, marker) };
  }

  it('suspends the whole run; the call stands at the top of the stream and names its parent in the transcript', async () => {
    const { run } = await waitingInside();
    const call = run.turn.of('tool-call')[0];
    expect(run.turn.types.slice(-3)).to.deep.equal(['finish-step', 'tool-call-suspended', 'done']);
    expect(run.calls[0]).to.deep.include({ kind: 'approval', toolName: 'act', input: { n: 1 } });
    const { openSuspensions, messages } = await chat.transcript(run.sessionId, 1);
    expect(openSuspensions).to.deep.equal([
      {
        runId: run.runId,
        executionId: run.executionId,
        toolCallId: run.id(),
        toolName: 'act',
        kind: 'approval',
        input: { n: 1 },
        parentToolCallId: call?.toolCallId,
      },
    ]);
    const part = messages[1]?.content[0];
    expect(part).to.include({ state: 'suspended', toolCallId: call?.toolCallId });
    expect(childOf(part)).to.deep.include({ text: 'May I? ' });
    expect(childOf(part).toolCalls[0]).to.include({ state: 'suspended', toolCallId: run.id() });
  });

  it('goes on inside the child after the answer, in the same part of the transcript', async () => {
    const { marker, task, run } = await waitingInside();
    const resumed = await run.resume(run.id(), APPROVE, { main: 1 });
    expect(resumed).to.include({ status: 'success', text: 'Done.' });
    const parent = run.turn.of('tool-call')[0]?.toolCallId;
    const chunks = chunksOf(
      resumed.events.map((event) => event.data),
      parent,
    );
    expect(chunks[0]).to.deep.include({ type: 'tool-result', toolCallId: run.id(), output: { did: { n: 1 } } });
    expect(joined(chunks, 'text-delta')).to.equal('Did.');
    expect(resumed.of('tool-result')).to.have.length(1);
    expect(resumed.of('tool-result')[0]).to.include({ toolCallId: parent, output: 'Did.' });
    const { messages } = await chat.transcript(run.sessionId);
    expect(messages.filter((message) => message.role === 'assistant')).to.have.length(1);
    expect(messages[1]?.content.map((part) => part.state ?? part.text)).to.deep.equal(['done', 'Done.']);
    const child = childOf(messages[1]?.content[0]);
    expect(child.text).to.equal('May I? Did.');
    expect(child.toolCalls.map((call) => call.state)).to.deep.equal(['done']);
    expect(cluster.model.requestsFor(task)).to.have.length(2);
    expect(cluster.model.requestsFor(marker)).to.have.length(2);
  });

  it('denied inside: the child’s model is told and goes on', async () => {
    const { task, run } = await waitingInside();
    const count = cluster.tools.callsOf('act').length;
    expect((await run.resume(run.id(), { ...DENY, reason: 'not now' })).status).to.equal('success');
    expect(cluster.tools.callsOf('act')).to.have.length(count);
    const told = (await cluster.model.request(task, 2)).body.messages?.at(-1);
    expect(textOf(told?.content)).to.contain('not now');
  });

  it('the budget goes on where it was', async () => {
    const [marker, task] = [unique('parent'), unique('task')];
    cluster.model.on(marker, callTool('deeper', { task }), say('Done.'));
    cluster.model.on(
      task,
      reply(think('r'.repeat(500)), say('😀'.repeat(2_500)), callTool('act', {})),
      say('😀'.repeat(2_500)),
    );
    const run = await suspend(chat, marker);
    const before = childOf((await chat.transcript(run.sessionId)).messages[1]?.content[0]);
    expect([[...before.text].length, before.truncated]).to.deep.equal([2_500, false]);
    await run.resume(run.id(), APPROVE);
    const after = childOf((await chat.transcript(run.sessionId)).messages[1]?.content[0]);
    expect([[...after.text].length, after.reasoning.length, after.truncated]).to.deep.equal([3_500, 500, true]);
  });

  it('a question inside is answered like any other', async () => {
    const [marker, task] = [unique('parent'), unique('task')];
    cluster.model.on(marker, callTool('deeper', { task }), say('Done.'));
    cluster.model.on(task, callTool('ask_user', { question: 'Which one?' }), say('That one.'));
    const run = await suspend(chat, marker);
    expect(run.calls[0]).to.deep.include({ kind: 'question', input: { question: 'Which one?' } });
    const resumed = await run.resume(run.id(), { answer: 'the left' });
    expect(resumed.of('tool-result')[0]).to.include({ output: 'That one.' });
  });

  it('two delegates at once, each suspended, and one of the parent: all wait, each goes on where it was', async () => {
    const [marker, one, two] = [unique('parent'), unique('one'), unique('two')];
    cluster.model.on(
      marker,
      reply(callTool('deeper', { task: one }), callTool('act', { n: 0 }), callTool('deeper', { task: two })),
      say('All.'),
    );
    cluster.model.on(one, reply(callTool('look', {}), callTool('act', { n: 1 })), say('One.'));
    cluster.model.on(two, callTool('act', { n: 2 }), say('Two.'));
    const run = await suspend(chat, marker);
    const parents = run.turn.of('tool-call').map((call) => call.toolCallId);
    expect(
      run.calls.map((call) => call.input),
      'in the order of the calls',
    ).to.deep.equal([{ n: 1 }, { n: 0 }, { n: 2 }]);
    const { openSuspensions } = await chat.transcript(run.sessionId);
    expect((openSuspensions as Open[]).map((open) => open.parentToolCallId)).to.deep.equal([
      parents[0],
      undefined,
      parents[2],
    ]);
    const count = cluster.tools.callsOf('act').length;
    await run.accept(run.id(2), APPROVE);
    await run.accept(run.id(0), DENY);
    const resumed = await run.resume(run.id(1), APPROVE);
    expect(resumed).to.include({ status: 'success', text: 'All.' });
    const bodies = cluster.tools
      .callsOf('act')
      .slice(count)
      .map((call) => call.body);
    expect(bodies).to.deep.equal([{ n: 0 }, { n: 2 }]);
    const told = (await cluster.model.request(marker, 2)).body.messages?.slice(-3) ?? [];
    expect(told.map((message) => textOf(message.content))).to.deep.equal(['One.', '{"did":{"n":0}}', 'Two.']);
    const { messages } = await chat.transcript(run.sessionId);
    expect(messages[1]?.content.map((part) => part.state ?? part.text)).to.deep.equal(['done', 'done', 'done', 'All.']);
    expect(childOf(messages[1]?.content[0]).toolCalls.map((call) => call.state)).to.deep.equal(['done', 'denied']);
  });

  it('one delegate goes on while the other suspends again', async () => {
    const [marker, one, two] = [unique('parent'), unique('one'), unique('two')];
    cluster.model.on(marker, reply(callTool('deeper', { task: one }), callTool('deeper', { task: two })), say('All.'));
    cluster.model.on(one, callTool('act', { n: 1 }), callTool('act', { n: 11 }), say('One.'));
    cluster.model.on(two, callTool('act', { n: 2 }), say('Two.'));
    const run = await suspend(chat, marker);
    await run.accept(run.id(0), APPROVE);
    const again = run.again(await run.resume(run.id(1), APPROVE));
    expect(again.calls.map((call) => call.input)).to.deep.equal([{ n: 11 }]);
    const { messages } = await chat.transcript(run.sessionId);
    expect(messages[1]?.content.map((part) => part.state)).to.deep.equal(['suspended', 'done']);
    expect((await again.resume(again.id(), APPROVE)).text).to.equal('All.');
  });

  it('a grandchild’s call waits for a person as well', async () => {
    const deep = await chainOf(cluster, {}, {}, {}, { tools: own() });
    const [marker, one, two, three] = [unique('m'), unique('one'), unique('two'), unique('three')];
    cluster.model.on(marker, callTool('deeper', { task: one }), say('0'));
    cluster.model.on(one, callTool('deeper', { task: two }), say('1'));
    cluster.model.on(two, callTool('deeper', { task: three }), say('2'));
    cluster.model.on(three, callTool('act', {}), say('3'));
    const run = await suspend(deep, marker);
    const { openSuspensions, messages } = await deep.transcript(run.sessionId);
    const parent = childOf(childOf(messages[1]?.content[0]).toolCalls[0]).toolCalls[0];
    expect((openSuspensions as Open[])[0]?.parentToolCallId).to.equal(parent?.toolCallId);
    expect(parent?.state).to.equal('suspended');
    const resumed = await run.resume(run.id(), APPROVE);
    expect(resumed).to.include({ status: 'success', text: '0' });
    for (const task of [one, two]) expect(cluster.model.requestsFor(task)).to.have.length(2);
  });

  it('Stop cancels the child’s calls too; a later answer is 409 and the next turn’s history is valid', async () => {
    const { run } = await waitingInside();
    expect(await chat.stop(run.sessionId, run.executionId)).to.deep.equal({ cancelRequested: true });
    const { messages } = await chat.transcript(run.sessionId);
    const part = messages[1]?.content[0];
    expect(part?.state).to.equal('cancelled');
    expect(childOf(part).toolCalls.map((call) => call.state)).to.deep.equal(['cancelled']);
    expectProblem(await run.post({ toolCallId: run.id(), resumeData: APPROVE }), 409, 'suspension_resolved');
    expect((await chat.turn(unique('next'), { sessionId: run.sessionId })).status).to.equal('success');
  });

  it('a child whose model fails after the answer is an error that the parent is told', async () => {
    const { run } = await waitingInside(refuse(400, 'gone meanwhile'));
    const resumed = await run.resume(run.id(), APPROVE);
    expect(resumed).to.include({ status: 'success', text: 'Done.' });
    expect(resumed.of('tool-result')[0]).to.include({ isError: true });
  });
});
