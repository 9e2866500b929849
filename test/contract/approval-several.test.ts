import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { textOf } from '../support/model-rules.js';
import { callTool, reply, say } from '../support/model-script.js';
import { APPROVE, DENY, suspend } from '../support/resume.js';
import { useCluster } from '../support/suite.js';
import { answer } from '../support/tool-server.js';

describe('several suspensions in one step (section 5)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat({
      tools: [
        cluster.httpTool('act', { requireApproval: true }),
        cluster.httpTool('look'),
        { type: 'question', name: 'ask_user' },
      ],
    });
    cluster.tools.on('act', (call, response) => answer({ did: call.body })(call, response));
    cluster.tools.on('look', answer('looked'));
  });

  /** Three calls to approve, and one that needs nobody, in one step. */
  async function three() {
    const marker = unique('three');
    const act = (n: number) => callTool('act', { n });
    cluster.model.on(marker, reply(act(0), callTool('look', {}), act(1), act(2)), say('Finished.'));
    return { marker, run: await suspend(chat, marker), count: cluster.tools.callsOf('act').length };
  }

  it('tells of each in the order of the calls, and lists them so', async () => {
    const { run } = await three();
    expect(run.calls.map((call) => call.input)).to.deep.equal([{ n: 0 }, { n: 1 }, { n: 2 }]);
    const { openSuspensions } = await chat.transcript(run.sessionId, 1);
    expect(openSuspensions.map((open) => (open as { toolCallId: string }).toolCallId)).to.deep.equal(
      run.calls.map((call) => call.toolCallId),
    );
  });

  it('goes on with the last answer, in whatever order they came; until then `done` says suspended', async () => {
    const { marker, run, count } = await three();
    for (const [answers, at] of [2, 0].entries()) {
      const resumed = await run.resume(run.id(at), APPROVE, { main: answers });
      expect(resumed.accepted).to.include({ remaining: 2 - answers, toolCallId: run.id(at) });
      expect(resumed.events.map((event) => event.data)).to.have.length(2);
      expect(resumed.of('done')[0]).to.include({
        status: 'suspended',
        executionId: run.executionId,
        sessionId: run.sessionId,
      });
      expect(resumed.usage).to.deep.equal(run.turn.usage);
    }
    expect(cluster.tools.callsOf('act'), 'nothing runs before the last answer').to.have.length(count);
    const { openSuspensions } = await chat.transcript(run.sessionId);
    expect(openSuspensions).to.have.length(1);
    const last = await run.resume(run.id(1), APPROVE, { main: 1 });
    expect(last.accepted).to.include({ remaining: 0 });
    expect(last).to.include({ status: 'success', text: 'Finished.' });
    const bodies = cluster.tools
      .callsOf('act')
      .slice(count)
      .map((call) => call.body);
    expect(bodies, 'in the order of the calls').to.deep.equal([{ n: 0 }, { n: 1 }, { n: 2 }]);
    expect(last.of('tool-result').map((event) => event.toolCallId)).to.deep.equal(
      run.calls.map((call) => call.toolCallId),
    );
    expect((await cluster.model.request(marker, 2)).state()).to.equal('answered');
  });

  it('runs approved calls one after the other', async () => {
    const { run } = await three();
    let running = 0;
    let most = 0;
    cluster.tools.on('act', async (call, response) => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      answer({ did: call.body })(call, response);
    });
    for (const at of [0, 1, 2]) await run.accept(run.id(at), APPROVE);
    await chat.settled(run.sessionId, 2);
    expect(most).to.equal(1);
  });

  it('approve and deny mixed: what is denied is not run, and the model is told of each', async () => {
    const { marker, run, count } = await three();
    await run.accept(run.id(1), { ...DENY, reason: 'not the middle one' });
    await run.accept(run.id(0), APPROVE);
    const last = await run.resume(run.id(2), APPROVE);
    expect(last.status).to.equal('success');
    const bodies = cluster.tools
      .callsOf('act')
      .slice(count)
      .map((call) => call.body);
    expect(bodies).to.deep.equal([{ n: 0 }, { n: 2 }]);
    const messages = (await cluster.model.request(marker, 2)).body.messages ?? [];
    const results = messages.filter((message) => message.role === 'tool').map((message) => textOf(message.content));
    expect(results[0]).to.equal('{"did":{"n":0}}');
    expect(results[1]).to.equal('looked');
    expect(results[2]).to.contain('not the middle one');
    expect(results[3]).to.equal('{"did":{"n":2}}');
    const { messages: shown } = await chat.transcript(run.sessionId);
    expect(shown.at(-1)?.content.map((part) => part.state ?? part.text)).to.deep.equal([
      'done',
      'done',
      'denied',
      'done',
      'Finished.',
    ]);
  });

  it('all denied: nothing runs and the turn goes on', async () => {
    const { run, count } = await three();
    for (const at of [0, 1]) await run.accept(run.id(at), DENY);
    expect(await run.resume(run.id(2), DENY)).to.include({ status: 'success', text: 'Finished.' });
    expect(cluster.tools.callsOf('act')).to.have.length(count);
  });

  it('an approval and a question beside each other', async () => {
    const marker = unique('both');
    cluster.model.on(marker, reply(callTool('ask_user', { question: 'Which?' }), callTool('act', { n: 9 })), say('ok'));
    const run = await suspend(chat, marker);
    expect(run.calls.map((call) => call.kind)).to.deep.equal(['question', 'approval']);
    await run.accept(run.id(1), APPROVE);
    expect((await run.resume(run.id(0), { answer: 'this' })).status).to.equal('success');
    const messages = (await cluster.model.request(marker, 2)).body.messages ?? [];
    const results = messages.filter((message) => message.role === 'tool').map((message) => textOf(message.content));
    expect(results).to.deep.equal(['this', '{"did":{"n":9}}']);
  });

  it('all answered at once, from two mains: each once, one of them is the last, one continuation', async () => {
    const { run, count } = await three();
    const streams = await Promise.all(
      run.calls.map((call, at) => run.answer(call.toolCallId, APPROVE, { main: at % 2 })),
    );
    const ends = await Promise.all(streams.map((stream) => stream.all()));
    const remaining = ends.map((events) => events[0]?.data.remaining).sort();
    expect(remaining).to.deep.equal([0, 1, 2]);
    expect(ends.map((events) => events.at(-1)?.data.status).sort()).to.deep.equal([
      'success',
      'suspended',
      'suspended',
    ]);
    expect(cluster.tools.callsOf('act')).to.have.length(count + 3);
    expect(await chat.executions(run.sessionId)).to.have.length(2);
  });
});
