import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { chainOf, childOf, chunksOf, delegateTool, joined } from '../support/delegation.js';
import { unique } from '../support/environment.js';
import { gate } from '../support/gate.js';
import { textOf } from '../support/model-rules.js';
import { callTool, never, refuse, reply, say, think } from '../support/model-script.js';
import { QueueClient } from '../support/queue.js';
import { useCluster } from '../support/suite.js';
import { answer, silence } from '../support/tool-server.js';

describe('delegates (sections 3, 4 and 5)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    cluster.tools.on('look', answer({ seen: true }));
    cluster.tools.on('slow', silence());
    chat = await chainOf(
      cluster,
      { instructions: 'The parent.' },
      { instructions: 'The child.', tools: [cluster.httpTool('look'), cluster.httpTool('slow')] },
    );
  });

  /** A parent that hands one task over and says 'Done.', with the child's replies. */
  function handOver(...child: Parameters<typeof reply>) {
    const [marker, task] = [unique('parent'), unique('task')];
    cluster.model.on(marker, callTool('deeper', { task }), say('Done.'));
    cluster.model.on(task, ...child);
    return { marker, task };
  }

  it('runs inside the parent’s execution: its output as chunks, its last answer is the call’s output', async () => {
    const { marker, task } = handOver(
      reply(think('a thought'), say('Looking. '), callTool('look', { q: 1 })).withUsage(10, 1),
      say('The answer ', 'is 42.').withUsage(20, 2),
    );
    const turn = await chat.turn(marker);
    expect(turn).to.include({ status: 'success', text: 'Done.' });
    const call = turn.of('tool-call')[0];
    const chunks = chunksOf(
      turn.events.map((event) => event.data),
      call?.toolCallId,
    );
    const types = chunks.map((chunk) => chunk.type).filter((type, at, all) => type !== all[at - 1]);
    expect(types.filter((type) => !type.startsWith('tool-input'))).to.deep.equal([
      'reasoning-start',
      'reasoning-delta',
      'reasoning-end',
      'text-start',
      'text-delta',
      'text-end',
      'tool-call',
      'tool-result',
      'text-start',
      'text-delta',
      'text-end',
    ]);
    expect(joined(chunks, 'text-delta')).to.equal('Looking. The answer is 42.');
    expect(
      turn.of('start-step').map((event) => event.step),
      'steps of the parent, counted over all',
    ).to.deep.equal([1, 4]);
    expect(turn.of('tool-result')[0]).to.include({ toolCallId: call?.toolCallId, output: 'The answer is 42.' });
    const inner = chunks.find((chunk) => chunk.type === 'tool-call');
    expect(cluster.tools.callsOf('look').at(-1)?.headers).to.include({
      'x-turnkeep-execution-id': turn.executionId,
      'idempotency-key': inner?.toolCallId,
    });
    const child = (await cluster.model.request(task)).body;
    expect(JSON.stringify(child.messages)).to.contain('The child.').and.not.to.contain('The parent.');
    const told = (await cluster.model.request(marker, 2)).body.messages?.at(-1);
    expect(textOf(told?.content)).to.equal('The answer is 42.');
    expect((turn.usage as { inputTokens: number }).inputTokens).to.be.at.least(30);
    expect(await chat.executions(turn.sessionId)).to.have.length(1);
  });

  it('stands in the transcript as the call’s child', async () => {
    const { marker } = handOver(reply(think('hm'), say('Looking. '), callTool('look', { q: 2 })), say('Found.'));
    const turn = await chat.turn(marker);
    const { messages } = await chat.transcript(turn.sessionId, 1);
    const [part, text] = messages[1]?.content ?? [];
    expect(part).to.deep.include({ type: 'tool-call', toolName: 'deeper', state: 'done', output: 'Found.' });
    expect(text).to.deep.equal({ type: 'text', text: 'Done.' });
    const child = childOf(part);
    expect(child).to.deep.include({ text: 'Looking. Found.', reasoning: 'hm', truncated: false });
    expect(child.toolCalls).to.have.length(1);
    expect(child.toolCalls[0]).to.deep.include({
      toolName: 'look',
      input: { q: 2 },
      state: 'done',
      output: { seen: true },
    });
  });

  describe('the budget of 4,000 characters, shared by text and reasoning', () => {
    const kept = async (...child: Parameters<typeof reply>) => {
      const { marker } = handOver(...child);
      const turn = await chat.turn(marker);
      const { messages } = await chat.transcript(turn.sessionId);
      const call = turn.of('tool-call')[0]?.toolCallId;
      const events = turn.events.map((event) => event.data);
      return { child: childOf(messages[1]?.content[0]), live: chunksOf(events, call), turn };
    };
    const length = (text: string) => [...text].length;

    it('keeps exactly 4,000 and says nothing of a cut', async () => {
      const { child } = await kept(reply(think('r'.repeat(1_000)), say('t'.repeat(3_000))));
      expect([length(child.reasoning), length(child.text), child.truncated]).to.deep.equal([1_000, 3_000, false]);
    });

    it('one more is cut, and said to be', async () => {
      const { child } = await kept(reply(think('r'.repeat(1_000)), say('t'.repeat(3_001))));
      expect([length(child.reasoning), length(child.text), child.truncated]).to.deep.equal([1_000, 3_000, true]);
    });

    it('counts code points and never cuts inside a character; live output and the answer are whole', async () => {
      const text = `a${'😀'.repeat(5_000)}`;
      const { child, live, turn } = await kept(reply(think('é'.repeat(10)), say(text).bytewise()));
      expect(child.text).to.equal(`a${'😀'.repeat(3_989)}`);
      expect(child.reasoning).to.equal('é'.repeat(10));
      expect(child.truncated).to.equal(true);
      expect(joined(live, 'text-delta')).to.equal(text);
      expect(turn.of('tool-result')[0]?.output).to.equal(text);
    });

    it('is one over all steps of a delegation, and each delegation has its own', async () => {
      const [marker, one, two] = [unique('parent'), unique('one'), unique('two')];
      cluster.model.on(marker, reply(callTool('deeper', { task: one }), callTool('deeper', { task: two })), say('ok'));
      cluster.model.on(one, reply(say('x'.repeat(2_500)), callTool('look', {})), say('y'.repeat(2_500)));
      cluster.model.on(two, say('z'.repeat(4_000)));
      const turn = await chat.turn(marker);
      const { messages } = await chat.transcript(turn.sessionId);
      const [first, second] = (messages[1]?.content ?? []).slice(0, 2).map(childOf);
      expect(first?.text).to.equal('x'.repeat(2_500) + 'y'.repeat(1_500));
      expect(first?.truncated).to.equal(true);
      expect(second).to.deep.include({ text: 'z'.repeat(4_000), truncated: false });
    });
  });

  describe('limits in sum', () => {
    const limits = (maxSteps: number) => ({ maxSteps, maxDurationMs: 600_000, maxToolOutputChars: 100_000 });

    it('a delegate’s requests count: the limit is reached inside it, with step_limit', async () => {
      const own = await chainOf(cluster, { limits: limits(3) }, { tools: [cluster.httpTool('look')] });
      const [marker, task] = [unique('parent'), unique('task')];
      cluster.model.on(marker, callTool('deeper', { task }));
      cluster.model.on(task, callTool('look', {}), callTool('look', {}));
      const turn = await own.turn(marker);
      expect(turn.error?.code).to.equal('step_limit');
      const { messages } = await own.transcript(turn.sessionId);
      const part = messages[1]?.content[0];
      expect(part?.state).to.equal('error');
      expect(childOf(part).toolCalls.map((call) => call.state)).to.deep.equal(['done', 'error']);
      const next = await own.turn(unique('next'), { sessionId: turn.sessionId });
      expect(next.status).to.equal('success');
    });

    it('two at once share them, and whichever reaches it ends the other: no request stays open', async () => {
      const own = await chainOf(cluster, { limits: limits(4) }, { tools: [cluster.httpTool('look')] });
      const [marker, one, two] = [unique('parent'), unique('one'), unique('two')];
      cluster.model.on(marker, reply(callTool('deeper', { task: one }), callTool('deeper', { task: two })));
      cluster.model.on(one, never());
      cluster.model.on(two, callTool('look', {}), callTool('look', {}));
      const turn = await own.turn(marker);
      expect(turn.error?.code).to.equal('step_limit');
      expect(await (await cluster.model.request(one)).over).to.equal('aborted');
      const { messages } = await own.transcript(turn.sessionId);
      expect(messages[1]?.content.map((part) => part.state)).to.deep.equal(['error', 'error']);
    });
  });

  it('a delegate’s model that fails is an error that the parent is told, and the turn goes on', async () => {
    const { marker } = handOver(refuse(400, 'no such model'));
    const turn = await chat.turn(marker);
    expect(turn).to.include({ status: 'success', text: 'Done.' });
    expect(turn.of('tool-result')[0]).to.include({ isError: true });
    const told = (await cluster.model.request(marker, 2)).body.messages?.at(-1);
    expect(textOf(told?.content)).to.contain('no such model');
  });

  it('a call without a task is an error that the parent is told', async () => {
    const marker = unique('no-task');
    cluster.model.on(marker, callTool('deeper', { job: 'x' }), say('ok'));
    const turn = await chat.turn(marker);
    expect(turn.status).to.equal('success');
    expect(turn.of('tool-result')[0]).to.include({ isError: true });
  });

  it('Stop reaches inside: the child’s request and its tool are aborted, its call is cancelled', async () => {
    for (const where of ['model', 'tool'] as const) {
      const { marker, task } = handOver(
        where === 'model' ? reply(say('half'), never()) : reply(say('half'), callTool('slow', {})),
      );
      const count = cluster.tools.callsOf('slow').length;
      const stream = await chat.send(marker);
      const { sessionId, executionId } = (await stream.until('execution-started')).data;
      const request = await cluster.model.request(task);
      if (where === 'tool') await cluster.tools.call('slow', count + 1);
      else await stream.until(({ data }) => joined([data.chunk as typeof data].filter(Boolean), 'text-delta') !== '');
      await chat.stop(String(sessionId), String(executionId), 1);
      expect((await stream.all()).at(-1)?.data).to.include({ status: 'cancelled' });
      if (where === 'model') expect(await request.over).to.equal('aborted');
      else expect(await cluster.tools.callsOf('slow').at(-1)?.over).to.equal('aborted');
      const { messages } = await chat.transcript(String(sessionId));
      const part = messages[1]?.content[0];
      expect(part?.state).to.equal('cancelled');
      expect(childOf(part).text).to.equal('half');
      for (const call of childOf(part).toolCalls) expect(call.state).to.equal('cancelled');
      expect((await chat.turn(unique('next'), { sessionId: String(sessionId) })).status).to.equal('success');
    }
  });

  it('takes no steers: a message that is steered meanwhile comes in at the parent’s boundary', async () => {
    const held = gate();
    const { marker, task } = handOver(say('The child', held, ' said.'));
    const stream = await chat.send(marker);
    const { sessionId, executionId } = (await stream.until('execution-started')).data;
    await held.reached();
    const steered = unique('steered');
    cluster.model.on(steered, say('Both.'));
    const { queueId } = await chat.accept(steered, { sessionId: String(sessionId) });
    await new QueueClient(chat, String(sessionId)).steer(queueId, String(executionId));
    held.open();
    await stream.all();
    expect(cluster.model.requestsFor(task)).to.have.length(1);
    expect(cluster.model.requestsFor(steered)).to.have.length(1);
    const asked = JSON.stringify((await cluster.model.request(steered)).body.messages);
    expect(asked).to.contain('The child said.');
  });

  it('three deep works, each level nested in chunks and transcript', async () => {
    const own = await chainOf(cluster, {}, {}, {}, { tools: [cluster.httpTool('look')] });
    const [marker, one, two, three] = [unique('m'), unique('one'), unique('two'), unique('three')];
    cluster.model.on(marker, callTool('deeper', { task: one }), say('0'));
    cluster.model.on(one, callTool('deeper', { task: two }), say('1'));
    cluster.model.on(two, callTool('deeper', { task: three }), say('2'));
    cluster.model.on(three, callTool('look', {}), say('3'));
    const turn = await own.turn(marker);
    expect(turn).to.include({ status: 'success', text: '0' });
    const { messages } = await own.transcript(turn.sessionId);
    const path: unknown[] = [];
    let part = messages[1]?.content[0];
    for (const text of ['1', '2', '3']) {
      path.push(part?.toolCallId);
      const child = childOf(part);
      expect(child.text).to.equal(text);
      expect(part?.output).to.equal(text);
      const events = turn.events.map((event) => event.data);
      expect(joined(chunksOf(events, ...path), 'text-delta')).to.equal(text);
      part = child.toolCalls[0];
    }
    expect(part).to.include({ toolName: 'look', state: 'done' });
  });

  it('a deeper chain is refused when an agent is saved', async () => {
    const own = await chainOf(cluster, {}, {}, {}, {});
    const body = { name: 'above', config: cluster.config({ tools: [delegateTool('below', own.agentId)] }) };
    const refused = await own.http().post(`/projects/${own.projectId}/agents/v2`, body);
    expect(refused.status).to.equal(400);
  });

  it('the child’s configuration is that of the run’s beginning; a deleted delegate is an error that the model is told', async () => {
    const own = await chainOf(cluster, {}, { instructions: 'Old child.' });
    const { agents } = (await own.http().expect(200, `/projects/${own.projectId}/agents/v2`)).json<{
      agents: { id: string }[];
    }>();
    const childId = agents.map((agent) => agent.id).find((id) => id !== own.agentId);
    const path = `/projects/${own.projectId}/agents/v2/${childId}`;
    const [marker, task] = [unique('parent'), unique('task')];
    const held = gate();
    cluster.model.on(marker, reply(say('Wait', held), callTool('deeper', { task })), say('ok'));
    cluster.model.on(task, say('child'));
    const stream = await own.send(marker);
    await held.reached();
    const body = { name: 'child', config: cluster.config({ instructions: 'New child.' }) };
    await own.http().expect(200, path, { method: 'PUT', body });
    held.open();
    const started = (await stream.all()).find((event) => event.data.type === 'execution-started');
    expect(JSON.stringify((await cluster.model.request(task)).body.messages)).to.contain('Old child.');
    await own.http().delete(path);
    const after = unique('after');
    cluster.model.on(after, callTool('deeper', { task: 'nobody' }), say('Without it.'));
    const turn = await own.turn(after, { sessionId: String(started?.data.sessionId) });
    expect(turn).to.include({ status: 'success', text: 'Without it.' });
    expect(turn.of('tool-result')[0]).to.include({ isError: true });
  });
});
