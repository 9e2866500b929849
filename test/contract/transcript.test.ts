import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { eventually } from '../support/deadline.js';
import { unique } from '../support/environment.js';
import { gate } from '../support/gate.js';
import { callTool, reply, say, think } from '../support/model-script.js';
import { expectProblem } from '../support/problem.js';
import { useCluster } from '../support/suite.js';
import { answer, answerAfter } from '../support/tool-server.js';

describe('the transcript (section 5)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat({ tools: [cluster.httpTool('look'), cluster.httpTool('wait')] });
    cluster.tools.on('look', answer({ seen: true }));
  });

  it('holds the user’s message and the answer with all its parts, in order', async () => {
    const marker = unique('parts');
    cluster.model.on(marker, reply(think('hm'), say('Let me look.'), callTool('look', { at: 'it' })), say('Seen.'));
    const turn = await chat.turn(marker);
    const transcript = await chat.transcript(turn.sessionId, 1);
    expect(transcript).to.include({ activeExecutionId: null });
    expect(transcript.openSuspensions).to.deep.equal([]);
    const [user, assistant] = transcript.messages;
    expect(transcript.messages).to.have.length(2);
    expect(user).to.deep.include({
      id: turn.messageId,
      role: 'user',
      executionId: turn.executionId,
      content: [{ type: 'text', text: marker }],
    });
    expect(assistant).to.deep.include({ role: 'assistant', executionId: turn.executionId, status: 'success' });
    const toolCallId = turn.of('tool-call')[0]?.toolCallId;
    expect(assistant?.content).to.deep.equal([
      { type: 'reasoning', text: 'hm' },
      { type: 'text', text: 'Let me look.' },
      {
        type: 'tool-call',
        toolCallId,
        toolName: 'look',
        input: { at: 'it' },
        state: 'done',
        output: { seen: true },
      },
      { type: 'text', text: 'Seen.' },
    ]);
    for (const message of transcript.messages) expect(new Date(message.createdAt).toISOString()).to.be.a('string');
  });

  it('names the running execution before any output', async () => {
    const marker = unique('early');
    const held = gate();
    cluster.model.on(marker, say(held, 'late'));
    const stream = await chat.send(marker);
    const { sessionId, executionId } = (await stream.until('execution-started')).data;
    const { activeExecutionId, messages } = await chat.transcript(String(sessionId), 1);
    expect(activeExecutionId).to.equal(executionId);
    expect(messages[0]).to.include({ role: 'user' });
    for (const message of messages.slice(1)) expect(message).to.include({ role: 'assistant', status: 'running' });
    await held.reached();
    held.open();
    await stream.all();
  });

  it('shows the running answer as it grows, at most 500 ms old', async () => {
    const marker = unique('growing');
    const held = gate();
    cluster.model.on(marker, say('so far', held, ' and on'));
    const stream = await chat.send(marker);
    const sessionId = String((await stream.until('text-delta')).data.sessionId ?? stream.seen[0]?.data.sessionId);
    const growing = async () => {
      const last = (await chat.transcript(sessionId, 1)).messages.at(-1);
      return last?.status === 'running' && last.content.some((part) => part.text === 'so far');
    };
    // Twice the bound, for the machine that the tests run on.
    await eventually('the running answer is not in the transcript', growing, 1_000);
    held.open();
    await stream.all();
  });

  it('shows a tool call that is under way as running', async () => {
    const marker = unique('tool-running');
    const held = gate();
    cluster.tools.on('wait', answerAfter(held, { waited: true }));
    cluster.model.on(marker, callTool('wait', {}), say('ok'));
    const stream = await chat.send(marker);
    await stream.until('tool-call');
    const sessionId = String(stream.seen[0]?.data.sessionId);
    await held.reached();
    await eventually('the call is not in the transcript as running', async () => {
      const last = (await chat.transcript(sessionId)).messages.at(-1);
      return last?.content.some((part) => part.type === 'tool-call' && part.state === 'running');
    });
    held.open();
    await stream.all();
  });

  it('leaves out what is pending until it starts', async () => {
    const marker = unique('busy');
    const held = cluster.model.hold(marker);
    const first = await chat.accept(marker);
    await held.reached();
    const second = await chat.accept('I wait', { sessionId: first.sessionId });
    const ids = (await chat.transcript(first.sessionId)).messages.map((message) => message.id);
    expect(ids).to.include(first.messageId).and.not.to.include(second.messageId);
    held.open();
    await chat.settled(first.sessionId, 2);
    const roles = (await chat.transcript(first.sessionId)).messages.map((message) => message.role);
    expect(roles).to.deep.equal(['user', 'assistant', 'user', 'assistant']);
  });

  it('pages back by `before` and `limit`, newest first by default', async () => {
    const { sessionId } = await chat.turn('1');
    for (const text of ['2', '3']) await chat.turn(text, { sessionId });
    const all = (await chat.transcript(sessionId)).messages;
    expect(all).to.have.length(6);
    const page = async (query: string) => {
      const response = await chat.http().expect(200, chat.path(`/${sessionId}/messages?${query}`));
      return response.json<{ messages: { id: string }[] }>().messages.map((message) => message.id);
    };
    const ids = all.map((message) => message.id);
    expect(await page('limit=2')).to.deep.equal(ids.slice(4));
    expect(await page(`limit=2&before=${ids[4]}`)).to.deep.equal(ids.slice(2, 4));
    expect(await page(`limit=5&before=${ids[2]}`)).to.deep.equal(ids.slice(0, 2));
    expect(await page(`before=${ids[0]}`)).to.deep.equal([]);
  });

  it('400 for a limit that is no number or out of bounds', async () => {
    const { sessionId } = await chat.turn('x');
    for (const limit of ['0', '-1', 'x', '1.5', '']) {
      const response = await chat.http().get(chat.path(`/${sessionId}/messages?limit=${limit}`));
      expectProblem(response, 400, 'invalid_request');
    }
  });

  it('404 for a session that is not there', async () => {
    expectProblem(await chat.http().get(chat.path(`/${randomUUID()}/messages`)), 404, 'not_found');
  });

  it('is the same on both mains, and after a reload', async () => {
    const turn = await chat.turn('Same everywhere');
    const [one, two] = await Promise.all([0, 1].map((main) => chat.transcript(turn.sessionId, main)));
    expect(one).to.deep.equal(two);
  });
});
