import { seal } from '@turnkeep/shared/secrets/seal';
import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { gate } from '../support/gate.js';
import { callTool, refuse, reply, say } from '../support/model-script.js';
import { expectProblem } from '../support/problem.js';
import { QueueClient } from '../support/queue.js';
import { APPROVE, DENY, SuspendedRun, suspend } from '../support/resume.js';
import { useCluster } from '../support/suite.js';
import { answer, answerAfter } from '../support/tool-server.js';
import { readTurn } from '../support/turn.js';

describe('a suspended run, its session and its continuation (sections 3, 5, 6 and 9)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat({ tools: tools() });
    cluster.tools.on('act', answer('acted'));
    cluster.tools.on('look', answer('looked'));
  });
  const tools = () => [cluster.httpTool('act', { requireApproval: true }), cluster.httpTool('look')];

  async function waiting(of: Chat = chat, ...then: Parameters<typeof reply>) {
    const marker = unique('waiting');
    cluster.model.on(marker, callTool('act', {}), ...(then.length > 0 ? then : [say('on')]));
    return { marker, run: await suspend(of, marker) };
  }

  describe('messages that are sent meanwhile', () => {
    it('wait, can be changed, and start in their order after the continuation', async () => {
      const { run } = await waiting();
      const { sessionId } = run;
      const markers = [unique('one'), unique('two'), unique('three')];
      const stream = await chat.send(String(markers[0]), { sessionId, main: 1 });
      await stream.until('message-queued');
      for (const marker of markers.slice(1)) await chat.accept(marker, { sessionId });
      const queue = new QueueClient(chat, sessionId, 1);
      const ids = await queue.ids();
      expect(ids).to.have.length(3);
      const edited = unique('edited');
      expect((await queue.edit(String(ids[1]), edited)).status).to.equal(200);
      expect((await queue.reorder(String(ids[1]), String(ids[0]), ids)).status).to.equal(200);
      expect((await queue.remove(String(ids[2]))).status).to.equal(200);
      expectProblem(await queue.steer(String(ids[0]), run.executionId), 409, 'execution_not_steerable');
      expect((await queue.read()).steerableExecutionId).to.equal(null);
      expect(await chat.executions(sessionId), 'nothing of them has started').to.have.length(1);
      expect(stream.seen.map((event) => event.data.type)).to.deep.equal(['message-queued']);
      const resumed = await run.resume(run.id(), APPROVE);
      expect(resumed).to.include({ status: 'success', text: 'on' });
      const rows = await chat.settled(sessionId, 4);
      expect(rows.map((row) => row.runId).slice(0, 2)).to.deep.equal([run.runId, run.runId]);
      expect(rows.map((row) => row.status)).to.deep.equal(['suspended', 'success', 'success', 'success']);
      const { messages } = await chat.transcript(sessionId);
      const asked = messages.filter((message) => message.role === 'user').map((message) => message.content[0]?.text);
      expect(asked.slice(1)).to.deep.equal([edited, markers[0]]);
      expect((await readTurn(stream)).status).to.equal('success');
    });

    it('do not start while one of several calls still waits, and go after the resume', async () => {
      const marker = unique('two-calls');
      cluster.model.on(marker, reply(callTool('act', { n: 1 }), callTool('act', { n: 2 })), say('on'));
      const run = await suspend(chat, marker);
      const later = unique('later');
      await chat.accept(later, { sessionId: run.sessionId });
      await run.accept(run.id(0), APPROVE);
      expect(await chat.executions(run.sessionId)).to.have.length(1);
      await run.accept(run.id(1), DENY);
      const rows = await chat.settled(run.sessionId, 3);
      expect(rows.map((row) => row.runId === run.runId)).to.deep.equal([true, true, false]);
      expect(cluster.model.requestsFor(later)).to.have.length(1);
    });

    it('which were steered and not consumed are back in their places when the step suspends', async () => {
      const marker = unique('steered-back');
      const held = gate();
      cluster.model.on(marker, reply(say('Hm', held), callTool('act', {})), say('on'));
      const stream = await chat.send(marker);
      const { sessionId, executionId } = (await stream.until('execution-started')).data;
      await held.reached();
      const queue = new QueueClient(chat, String(sessionId), 1);
      const first = await chat.accept('the first', { sessionId: String(sessionId) });
      const second = await chat.accept('the second', { sessionId: String(sessionId) });
      expect((await queue.steer(second.queueId, String(executionId))).status).to.equal(200);
      held.open();
      const turn = await readTurn(stream);
      expect(turn.status).to.equal('suspended');
      expect(turn.of('message-steered')).to.deep.equal([]);
      const { items } = await queue.read();
      expect(items.map((item) => [item.id, item.steeringExecutionId])).to.deep.equal([
        [first.queueId, null],
        [second.queueId, null],
      ]);
    });
  });

  describe('the continuation', () => {
    it('takes steers at the boundary after the approved calls', async () => {
      const { run } = await waiting();
      const held = gate();
      cluster.tools.on('act', answerAfter(held, 'acted'));
      const steered = unique('steered');
      cluster.model.on(steered, say('As you wish.'));
      const stream = await run.answer(run.id(), APPROVE);
      const executionId = String((await stream.until('execution-started')).data.executionId);
      await held.reached();
      const { queueId } = await chat.accept(steered, { sessionId: run.sessionId });
      const queue = new QueueClient(chat, run.sessionId, 1);
      expect((await queue.read()).steerableExecutionId).to.equal(executionId);
      expectProblem(await queue.steer(queueId, run.executionId), 409, 'execution_not_steerable');
      expect((await queue.steer(queueId, executionId)).status).to.equal(200);
      held.open();
      const types = (await stream.all()).map((event) => event.data.type);
      cluster.tools.on('act', answer('acted'));
      expect(types.indexOf('message-steered')).to.be.greaterThan(types.indexOf('tool-result'));
      expect(types.indexOf('message-steered')).to.be.below(types.indexOf('start-step'));
      const { messages } = await chat.transcript(run.sessionId);
      expect(messages.map((message) => [message.role, message.executionId])).to.deep.equal([
        ['user', run.executionId],
        ['assistant', executionId],
        ['user', executionId],
        ['assistant', executionId],
      ]);
      expect(messages[1]?.content.map((part) => part.state)).to.deep.equal(['done']);
      expect(messages[3]?.content).to.deep.equal([{ type: 'text', text: 'As you wish.' }]);
    });

    it('suspends again after a steer, and goes on in the segment after it', async () => {
      const { run } = await waiting();
      const held = gate();
      cluster.tools.on('act', answerAfter(held, 'acted'));
      const steered = unique('steered-again');
      cluster.model.on(steered, reply(say('Then: '), callTool('act', { second: true })), say('All done.'));
      const stream = await run.answer(run.id(), APPROVE);
      const executionId = String((await stream.until('execution-started')).data.executionId);
      await held.reached();
      const { queueId } = await chat.accept(steered, { sessionId: run.sessionId });
      await new QueueClient(chat, run.sessionId).steer(queueId, executionId);
      held.open();
      await stream.until('tool-call-suspended');
      cluster.tools.on('act', answer('acted'));
      const call = stream.seen.at(-1)?.data;
      await stream.all();
      const last = await run.resume(String(call?.toolCallId), APPROVE, { main: 1 });
      expect(last).to.include({ status: 'success', text: 'All done.' });
      const { messages } = await chat.transcript(run.sessionId);
      expect(messages.map((message) => message.content.map((part) => part.text ?? part.state))).to.deep.equal([
        [messages[0]?.content[0]?.text],
        ['done'],
        [steered],
        ['Then: ', 'done', 'All done.'],
      ]);
      const next = unique('next');
      expect((await chat.turn(next, { sessionId: run.sessionId })).status).to.equal('success');
    });

    it('is stopped by its own id, in the approved call: the request is aborted, the call cancelled', async () => {
      const { run } = await waiting();
      const held = gate();
      cluster.tools.on('act', answerAfter(held, 'acted'));
      const stream = await run.answer(run.id(), APPROVE, { main: 1 });
      const executionId = String((await stream.until('execution-started')).data.executionId);
      await held.reached();
      expect(await chat.stop(run.sessionId, run.executionId)).to.deep.equal({ cancelRequested: false });
      expect(await chat.stop(run.sessionId, executionId)).to.deep.equal({ cancelRequested: true });
      expect((await stream.all()).at(-1)?.data).to.include({ type: 'done', status: 'cancelled', executionId });
      expect(await cluster.tools.callsOf('act').at(-1)?.over).to.equal('aborted');
      cluster.tools.on('act', answer('acted'));
      const rows = await chat.executions(run.sessionId);
      expect(rows.map((row) => row.status)).to.deep.equal(['suspended', 'cancelled']);
      const { messages } = await chat.transcript(run.sessionId);
      expect(messages.at(-1)?.content.map((part) => part.state)).to.deep.equal(['cancelled']);
      expect((await chat.turn(unique('next'), { sessionId: run.sessionId })).status).to.equal('success');
    });

    it('whose model refuses ends with its error, and the session is free', async () => {
      const { run } = await waiting(chat, refuse(400));
      const resumed = await run.resume(run.id(), APPROVE);
      expect(resumed).to.include({ status: 'error' });
      expect(resumed.error?.code).to.equal('model_refused');
      expect((await chat.turn(unique('next'), { sessionId: run.sessionId })).status).to.equal('success');
    });
  });

  describe('the configuration', () => {
    it('is that of the checkpoint, whatever became of the agent; the next turn has the new one', async () => {
      const own = await cluster.newChat({ tools: tools(), instructions: 'The old ones.' });
      const { marker, run } = await waiting(own);
      const config = cluster.config({ instructions: 'The new ones.', tools: [] });
      const path = `/projects/${own.projectId}/agents/v2/${own.agentId}`;
      await own.http().expect(200, path, { method: 'PUT', body: { name: 'changed', config } });
      const count = cluster.tools.callsOf('act').length;
      expect((await run.resume(run.id(), APPROVE)).status).to.equal('success');
      expect(cluster.tools.callsOf('act')).to.have.length(count + 1);
      const { body } = await cluster.model.request(marker, 2);
      expect(JSON.stringify(body.messages?.[0])).to.contain('The old ones.');
      expect(body.tools).to.have.length(2);
      const next = unique('next');
      await own.turn(next, { sessionId: run.sessionId });
      const after = (await cluster.model.request(next)).body;
      expect(JSON.stringify(after.messages?.[0])).to.contain('The new ones.');
      expect(after.tools).to.equal(undefined);
    });

    it('has its credential read afresh: a rotated key is used, a deleted one is an error that says so', async () => {
      const own = await cluster.newChat();
      const keep = async (apiKey: string) => {
        const body = { name: unique('key'), data: { apiKey } };
        const path = `/projects/${own.projectId}/credentials`;
        return (await own.http().expect(201, path, { method: 'POST', body })).json<{ id: string }>().id;
      };
      const credentialId = await keep('sk-before');
      const model = { ...cluster.config().model, credentialId };
      const path = `/projects/${own.projectId}/agents/v2/${own.agentId}`;
      const body = { name: 'with a key', config: cluster.config({ model, tools: tools() }) };
      await own.http().expect(200, path, { method: 'PUT', body });
      const { marker, run } = await waiting(own);
      expect((await cluster.model.request(marker)).headers.authorization).to.equal('Bearer sk-before');
      const [checkpoint] = await cluster.db.query<{ state: Buffer }>(
        'select state from checkpoints where run_id = $1',
        [run.runId],
      );
      expect(checkpoint?.state.includes('sk-before'), 'the key stands in the checkpoint').to.equal(false);
      const secret = seal(cluster.encryptionKey, credentialId, JSON.stringify({ apiKey: 'sk-after' }));
      await cluster.db.query('update credentials set secret = $2 where id = $1', [credentialId, secret]);
      expect((await run.resume(run.id(), APPROVE)).status).to.equal('success');
      expect((await cluster.model.request(marker, 2)).headers.authorization).to.equal('Bearer sk-after');

      const { run: doomed } = await waiting(own);
      await own.http().delete(`/projects/${own.projectId}/credentials/${credentialId}`);
      const failed = await doomed.resume(doomed.id(), APPROVE);
      expect(failed.error?.code).to.equal('model_refused');
      expect(failed.error?.message).to.match(/credential/);
    });
  });

  it('attachments of the message are with the model after the answer as before it', async () => {
    const marker = unique('attached');
    cluster.model.on(marker, callTool('act', {}), say('on'));
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
    const attachments = [{ fileName: 'dot.png', mimeType: 'image/png', data: png }];
    const turn = await readTurn(await chat.send(marker, { attachments }));
    const run = new SuspendedRun(chat, turn);
    expect((await run.resume(run.id(), APPROVE, { main: 1 })).status).to.equal('success');
    const [before, after] = [await cluster.model.request(marker), await cluster.model.request(marker, 2)];
    const asked = before.body.messages ?? [];
    expect(JSON.stringify(asked)).to.contain(png);
    expect(after.body.messages?.slice(0, asked.length), 'the same beginning').to.deep.equal(asked);
  });

  describe('limits and usage', () => {
    it('maxSteps counts over the run: a call in its last request ends with step_limit, not with a card', async () => {
      const limits = { maxSteps: 2, maxDurationMs: 600_000, maxToolOutputChars: 100_000 };
      const own = await cluster.newChat({ tools: tools(), limits });
      const { run } = await waiting(own, callTool('act', { again: true }));
      const resumed = await run.resume(run.id(), APPROVE);
      expect(resumed).to.include({ status: 'error' });
      expect(resumed.error?.code).to.equal('step_limit');
      expect(resumed.of('start-step').map((event) => event.step)).to.deep.equal([2]);
      expect((await own.turn(unique('next'), { sessionId: run.sessionId })).status).to.equal('success');
    });

    it('maxDurationMs is for each execution: the time that nobody answered does not count', async () => {
      const limits = { maxSteps: 20, maxDurationMs: 1_500, maxToolOutputChars: 100_000 };
      const own = await cluster.newChat({ tools: tools(), limits });
      const { run } = await waiting(own);
      await cluster.db.query(`update executions set started_at = started_at - interval '3 days' where id = $1`, [
        run.executionId,
      ]);
      expect((await run.resume(run.id(), APPROVE)).status).to.equal('success');
    });

    it('usage is each execution’s own', async () => {
      const { run } = await waiting(chat, callTool('look', {}).withUsage(10, 1), say('x').withUsage(20, 2));
      const resumed = await run.resume(run.id(), APPROVE);
      expect(resumed.usage).to.deep.equal({ inputTokens: 30, outputTokens: 3 });
      const rows = await chat.executions(run.sessionId);
      expect(rows[0]?.usage).to.deep.equal(run.turn.usage);
      expect(rows[1]?.usage).to.deep.equal(resumed.usage);
    });
  });

  it('notifies of the suspension, the answer and the continuation', async () => {
    const push = await chat.http(1).openSse('/push');
    await push.until('connected');
    const { run } = await waiting();
    const told = (executionId: string) =>
      push.until(
        ({ data }) =>
          data.type === 'agentExecutionUpdated' && (data.data as { executionId: string }).executionId === executionId,
      );
    await told(run.executionId);
    const resumed = await run.resume(run.id(), APPROVE);
    await told(resumed.executionId);
    push.close();
  });
});
