import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { callTool, reply, say, think } from '../support/model-script.js';
import { expectProblem } from '../support/problem.js';
import { useCluster } from '../support/suite.js';
import { answer } from '../support/tool-server.js';
import { checkHeaders } from '../support/turn.js';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

describe('sending a message (section 4)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat({ tools: [cluster.httpTool('get_weather')] });
  });

  describe('as a stream', () => {
    it('announces the acceptance, the start, the steps and the end, in this order', async () => {
      const marker = unique('plain');
      cluster.model.on(marker, say('Hello', ' there').withUsage(20, 4));
      const turn = await chat.turn(marker);
      expect(turn.types).to.deep.equal([
        'message-queued',
        'execution-started',
        'start-step',
        'text-start',
        'text-delta',
        'text-end',
        'finish-step',
        'done',
      ]);
      expect(turn).to.include({ text: 'Hello there', status: 'success' });
      for (const id of [turn.queueId, turn.sessionId, turn.messageId, turn.executionId, turn.runId]) {
        expect(id).to.match(UUID);
      }
    });

    it('names the accepted message when it starts', async () => {
      const turn = await chat.turn('What is new?');
      expect(turn.of('execution-started')[0]).to.deep.include({
        sessionId: turn.sessionId,
        message: { id: turn.messageId, text: 'What is new?', attachments: [] },
      });
      expect(turn.of('done')[0]).to.deep.include({ sessionId: turn.sessionId, executionId: turn.executionId });
    });

    it('reports the usage of each step, and their sum at the end', async () => {
      const marker = unique('usage');
      cluster.tools.on('get_weather', answer({ sky: 'grey' }));
      cluster.model.on(
        marker,
        callTool('get_weather', { city: 'Oslo' }).withUsage(20, 4),
        say('Grey').withUsage(31, 2),
      );
      const turn = await chat.turn(marker);
      expect(turn.of('finish-step').map((event) => event.usage)).to.deep.equal([
        { inputTokens: 20, outputTokens: 4 },
        { inputTokens: 31, outputTokens: 2 },
      ]);
      expect(turn.usage).to.deep.equal({ inputTokens: 51, outputTokens: 6 });
    });

    it('relays reasoning, text and a tool call with its arguments and its result', async () => {
      const marker = unique('everything');
      cluster.tools.on('get_weather', answer({ sky: 'blue' }));
      cluster.model.on(
        marker,
        reply(think('Where', '?'), say('Let me look.'), callTool('get_weather', { city: 'Tromsø' })),
        say('Blue.'),
      );
      const turn = await chat.turn(marker);
      expect(turn).to.include({ reasoning: 'Where?', text: 'Let me look.Blue.', status: 'success' });
      // Where a reasoning or a text ends, a provider may say at once or at the end of its answer.
      expect(turn.types.filter((type) => !/^(text|reasoning)-end$/.test(type))).to.deep.equal([
        ...['message-queued', 'execution-started', 'start-step'],
        ...['reasoning-start', 'reasoning-delta', 'text-start', 'text-delta'],
        ...['tool-input-start', 'tool-input-delta', 'tool-call', 'tool-result', 'finish-step'],
        ...['start-step', 'text-start', 'text-delta', 'finish-step', 'done'],
      ]);
      const call = turn.of('tool-call')[0];
      expect(call).to.deep.include({ toolName: 'get_weather', input: { city: 'Tromsø' } });
      expect(turn.of('tool-input-start')[0]).to.include({ toolCallId: call?.toolCallId, toolName: 'get_weather' });
      const input = turn.of('tool-input-delta').map((event) => event.delta);
      expect(JSON.parse(input.join(''))).to.deep.equal({ city: 'Tromsø' });
      expect(turn.of('tool-result')[0]).to.deep.include({
        toolCallId: call?.toolCallId,
        toolName: 'get_weather',
        output: { sky: 'blue' },
        isError: false,
      });
    });

    it('sends each piece of text as it comes, not at the end', async () => {
      const marker = unique('live');
      const held = cluster.model.hold(marker, 'first', 'second');
      const stream = await chat.send(marker);
      checkHeaders(stream);
      expect((await stream.until('text-delta')).data.delta).to.equal('first');
      held.open();
      expect((await stream.until('text-delta')).data.delta).to.equal('second');
      await stream.all();
    });

    it('has committed everything that `done` reports before it says so', async () => {
      const turn = await chat.turn('Are you done?');
      const [transcript, executions] = await Promise.all([
        chat.transcript(turn.sessionId, 1),
        chat.executions(turn.sessionId, 1),
      ]);
      expect(transcript.activeExecutionId).to.equal(null);
      expect(transcript.messages.at(-1)).to.include({ role: 'assistant', status: 'success' });
      expect(executions[0]).to.include({ id: turn.executionId, status: 'success' });
    });

    it('goes on without its reader', async () => {
      const marker = unique('leaver');
      const held = cluster.model.hold(marker, 'still', ' here');
      const stream = await chat.send(marker);
      const sessionId = String((await stream.next()).data.sessionId);
      stream.close();
      await held.reached();
      held.open();
      await chat.settled(sessionId);
      const { messages } = await chat.transcript(sessionId);
      expect(messages.at(-1)?.content).to.deep.equal([{ type: 'text', text: 'still here' }]);
    });

    it('splits a long delta into events of at most 64 KiB, and joins to the same text', async () => {
      const marker = unique('long-delta');
      const text = '0123456789é😀'.repeat(20_000);
      cluster.model.on(marker, say(text));
      const turn = await chat.turn(marker);
      expect(turn.text === text, 'the joined deltas are the text of the model').to.equal(true);
      const { messages } = await chat.transcript(turn.sessionId);
      expect(messages.at(-1)?.content[0]?.text === text, 'the transcript has the text of the model').to.equal(true);
    });
  });

  describe('as JSON', () => {
    it('answers 202 with the ids after the same commit, and the turn runs', async () => {
      const marker = unique('json');
      cluster.model.on(marker, say('Here'));
      const accepted = await chat.accept(marker);
      expect(Object.keys(accepted).sort()).to.deep.equal(['messageId', 'queueId', 'sessionId']);
      await chat.settled(accepted.sessionId);
      const { messages } = await chat.transcript(accepted.sessionId);
      expect(messages.map((message) => message.role)).to.deep.equal(['user', 'assistant']);
      expect(messages[0]?.id).to.equal(accepted.messageId);
    });
  });

  describe('into a session', () => {
    it('continues the session that is named, from either main, with its history', async () => {
      const [first, second] = [unique('first'), unique('second')];
      cluster.model.on(first, say('One'));
      const { sessionId } = await chat.turn(first);
      cluster.model.on(second, say('Two'));
      const turn = await chat.turn(second, { sessionId, main: 1 });
      expect(turn.sessionId).to.equal(sessionId);
      const { body } = await cluster.model.request(second);
      const spoken = (body.messages ?? []).filter((message) => message.role !== 'system');
      expect(spoken.map((message) => message.role)).to.deep.equal(['user', 'assistant', 'user']);
      expect(JSON.stringify(spoken)).to.contain(first).and.to.contain('One');
    });

    it('hands the instructions to the model', async () => {
      const marker = unique('instructions');
      await chat.turn(marker);
      const { body } = await cluster.model.request(marker);
      expect(JSON.stringify(body.messages?.[0])).to.contain('You are a test agent.');
    });

    it('makes a session with an id that it does not know', async () => {
      const sessionId = randomUUID();
      const turn = await chat.turn('Hello', { sessionId });
      expect(turn.sessionId).to.equal(sessionId);
    });

    it('takes two first sends with one new id at once: both are accepted, in one session', async () => {
      const sessionId = randomUUID();
      const accepted = await Promise.all([0, 1].map((main) => chat.accept(`from ${main}`, { sessionId, main })));
      expect(accepted.map((one) => one.sessionId)).to.deep.equal([sessionId, sessionId]);
      await chat.settled(sessionId, 2);
      const { messages } = await chat.transcript(sessionId);
      expect(messages.map((message) => message.role)).to.deep.equal(['user', 'assistant', 'user', 'assistant']);
    });

    it("answers 404 for somebody else's session, also when two users race for a new id", async () => {
      const { sessionId } = await chat.turn('Mine');
      const other = await cluster.newUser();
      await cluster.addMember(chat.user, chat.projectId, other, 'user');
      expectProblem(await chat.as(other).post({ message: 'Yours?', sessionId }), 404, 'not_found');

      const contested = randomUUID();
      const headers = { accept: 'application/json' };
      const both = [chat, chat.as(other)];
      const answers = await Promise.all(
        both.map((one, main) => one.post({ message: 'me first', sessionId: contested }, { main, headers })),
      );
      expect(answers.map((one) => one.status).sort()).to.deep.equal([202, 404]);
    });

    it("answers 404 for another agent's session", async () => {
      const { sessionId } = await chat.turn('Here');
      const agentId = await cluster.newAgent(chat.user, chat.projectId);
      const path = `/projects/${chat.projectId}/agents/v2/${agentId}/chat`;
      expectProblem(await chat.http().post(path, { message: 'There', sessionId }), 404, 'not_found');
    });
  });

  describe('what it refuses, changing nothing', () => {
    const bad: Record<string, unknown> = {
      'no message': {},
      'an empty message without an attachment': { message: '' },
      'a message that is no text': { message: 42 },
      'a session id that is no UUID': { message: 'x', sessionId: 'abc' },
      'attachments that are no list': { message: 'x', attachments: {} },
      'U+0000 in the text': { message: 'a\0b' },
      'a lone surrogate in the text': { message: 'a\ud83d' },
      'a body that is no object': [1],
      'a body of null': null,
    };
    for (const [what, body] of Object.entries(bad)) {
      it(`400 for ${what}`, async () => {
        const before = await sessionCount(chat);
        expectProblem(await chat.post(body), 400, 'invalid_request');
        expect(await sessionCount(chat)).to.equal(before);
      });
    }

    it('names what fails its schema by JSON Pointers', async () => {
      const body = expectProblem(await chat.post({ message: 42 }), 400, 'invalid_request');
      expect(JSON.stringify(body.errors)).to.contain('/message');
    });

    it('400 for a body that is not JSON', async () => {
      expectProblem(await chat.post('{"message": "x"'), 400, 'invalid_request');
    });

    it('400 for bytes that are not UTF-8', async () => {
      expectProblem(await chat.post(Buffer.from('{"message":"\xff"}', 'latin1')), 400, 'invalid_request');
    });

    it('415 for another type of body', async () => {
      const response = await chat.post('message=x', { headers: { 'content-type': 'text/plain' } });
      expectProblem(response, 415, 'unsupported_media_type');
    });

    it('400 for one character more than MAX_MESSAGE_CHARS; astral characters count once', async () => {
      expectProblem(await chat.post({ message: 'x'.repeat(100_001) }), 400, 'invalid_request');
      const { sessionId } = await chat.accept('😀'.repeat(100_000));
      await chat.settled(sessionId);
    });

    it('413 for a request above MAX_REQUEST_BYTES', async () => {
      const body = JSON.stringify({ message: 'x', attachments: [] }).padEnd(33_554_433);
      // As browsers send it: on a connection that is to be closed, nobody could read the answer before it breaks.
      const headers = { connection: 'keep-alive' };
      expectProblem(await chat.post(body, { headers }), 413, 'payload_too_large');
    });
  });
});

async function sessionCount(chat: Chat): Promise<number> {
  return (await chat.http().expect(200, chat.path())).json<{ sessions: unknown[] }>().sessions.length;
}
