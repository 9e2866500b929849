import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { answerRaw, callTool, callToolRaw, cut, never, raw, refuse, reply, say } from '../support/model-script.js';
import { useCluster } from '../support/suite.js';
import { answer } from '../support/tool-server.js';
import type { Turn } from '../support/turn.js';

const SECRET = 'sk-test-0123456789abcdefghijklmnop';

describe('a provider that fails (sections 4 and 8)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat({ tools: [cluster.httpTool('look')] });
    const body = { name: 'key', data: { apiKey: SECRET } };
    const path = `/projects/${chat.projectId}/credentials`;
    const created = await chat.http().expect(201, path, { method: 'POST', body });
    const model = { ...cluster.config().model, credentialId: created.json().id };
    const agent = { name: 'with a key', config: cluster.config({ model, tools: [cluster.httpTool('look')] }) };
    await chat
      .http()
      .expect(200, `/projects/${chat.projectId}/agents/v2/${chat.agentId}`, { method: 'PUT', body: agent });
  });
  afterEach(() => cluster.model.idle());

  /** Checks that the turn ended in this error, that it is recorded, and that the session is free again. */
  async function expectError(turn: Turn, code: string): Promise<void> {
    expect(turn.error, JSON.stringify(turn.types)).to.include({ code });
    expect(turn.status).to.equal('error');
    expect(turn.types.slice(-2)).to.deep.equal(['error', 'done']);
    expect(turn.error?.message)
      .to.match(/^.{10,500}$/s)
      .and.not.match(/\bat .+:\d+:\d+|undefined|\[object/);
    const rows = await chat.executions(turn.sessionId, 1);
    expect(rows.at(-1)).to.deep.include({ status: 'error', error: turn.error });
    const { messages, activeExecutionId } = await chat.transcript(turn.sessionId, 1);
    expect(activeExecutionId).to.equal(null);
    expect(JSON.stringify([turn.events, rows, messages])).not.to.contain(SECRET);
    const next = await chat.turn('And now?', { sessionId: turn.sessionId });
    expect(next, 'the next turn').to.include({ status: 'success' });
  }

  for (const [input, output, sum] of [
    [1.5, 2.9, { inputTokens: 1, outputTokens: 2 }],
    [-5, 3, { inputTokens: 0, outputTokens: 3 }],
    [1, 1e300, { inputTokens: 1, outputTokens: 1e12 }],
  ] as const) {
    it(`a usage of ${input} and ${output} tokens: the turn and what it said are kept, with counts that can be`, async () => {
      const marker = unique('usage');
      cluster.model.on(marker, say('all of it').withUsage(input, output));
      const turn = await chat.turn(marker);
      expect(turn).to.deep.include({ status: 'success', text: 'all of it', usage: sum });
      expect((await chat.executions(turn.sessionId))[0]?.usage).to.deep.equal(sum);
    });
  }

  it('U+0000 in a call id of the provider: the call runs, and what was said before it is kept', async () => {
    const marker = unique('call-id');
    const own = await cluster.newChat({ tools: [cluster.httpTool('noted')] });
    cluster.tools.on('noted', answer({ seen: true }));
    cluster.model.on(marker, reply(say('before'), callTool('noted', {}, 'c\u0000')), say('after'));
    const turn = await own.turn(marker);
    expect(turn).to.include({ status: 'success', text: 'beforeafter' });
    expect((await own.transcript(turn.sessionId)).messages[1]?.content).to.have.length(3);
  });

  it('the beginning of a key that a provider repeats is not shown', async () => {
    const marker = unique('beginning');
    cluster.model.on(marker, refuse(400, `Bad key Bearer ${SECRET.slice(0, 14)}**** given`));
    const turn = await chat.turn(marker);
    expect(turn.error?.message).to.contain('[credential] given').and.not.contain(SECRET.slice(0, 8));
  });

  for (const status of [400, 401, 403, 404, 422]) {
    it(`${status}: model_refused, without a second try`, async () => {
      const marker = unique(`refused-${status}`);
      cluster.model.on(marker, refuse(status, `a message about ${SECRET}`));
      await expectError(await chat.turn(marker), 'model_refused');
      expect(cluster.model.requestsFor(marker)).to.have.length(1);
    });
  }

  it('429 with Retry-After: tried again, and the turn succeeds', async () => {
    const marker = unique('busy');
    cluster.model.on(marker, refuse(429, 'slow down', { 'retry-after': '1' }), say('Here I am'));
    const turn = await chat.turn(marker);
    expect(turn).to.include({ text: 'Here I am', status: 'success' });
    const [first, second] = cluster.model.requestsFor(marker);
    expect((second?.at ?? 0) - (first?.at ?? 0), 'ms between the tries').to.be.at.least(950);
  });

  for (const status of [429, 500, 503]) {
    it(`${status} for ever: a bounded number of tries, then model_unavailable`, async function () {
      this.timeout(90_000);
      const marker = unique(`down-${status}`);
      const failure = refuse(status, 'down', { 'retry-after-ms': '10' });
      cluster.model.on(marker, ...Array.from({ length: 10 }, () => failure));
      await expectError(await chat.turn(marker), 'model_unavailable');
      expect(cluster.model.requestsFor(marker).length).to.be.within(2, 6);
    });
  }

  it('nobody there: model_unavailable', async () => {
    const model = { ...cluster.config().model, baseUrl: 'http://127.0.0.1:1/v1' };
    const agentId = await cluster.newAgent(chat.user, chat.projectId, { model });
    const path = `/projects/${chat.projectId}/agents/v2/${agentId}/chat`;
    const stream = await chat.http().openSse(path, { method: 'POST', body: { message: 'Anybody?' } });
    const events = await stream.all(30_000);
    expect(events.map((event) => event.data.type).slice(-2)).to.deep.equal(['error', 'done']);
    expect(events.at(-2)?.data).to.include({ code: 'model_unavailable' });
    expect(String(events.at(-2)?.data.message)).not.to.contain('127.0.0.1');
  });

  it('a stream cut in the middle: model_stream_broken, and what was said stays', async () => {
    const marker = unique('cut');
    cluster.model.on(marker, reply(say('half a sen'), cut()));
    const turn = await chat.turn(marker);
    await expectError(turn, 'model_stream_broken');
    expect(turn.text).to.equal('half a sen');
    const { messages } = await chat.transcript(turn.sessionId);
    expect(messages[1]).to.deep.include({ status: 'error', content: [{ type: 'text', text: 'half a sen' }] });
    expect(cluster.model.requestsFor(marker)).to.have.length(1);
  });

  it('a stream that ends without its end: model_stream_broken', async () => {
    const marker = unique('short');
    const chunk = { id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm' };
    const delta = {
      ...chunk,
      choices: [{ index: 0, delta: { role: 'assistant', content: 'half' }, finish_reason: null }],
    };
    const headers = { 'content-type': 'text/event-stream' };
    cluster.model.on(marker, answerRaw(200, `data: ${JSON.stringify(delta)}\n\n`, headers));
    await expectError(await chat.turn(marker), 'model_stream_broken');
  });

  it('a malformed chunk: model_stream_broken', async () => {
    const marker = unique('garbage');
    cluster.model.on(marker, reply(say('good'), raw('data: {"choices": [{"delta": {"content": "x"\n\n'), say('more')));
    await expectError(await chat.turn(marker), 'model_stream_broken');
  });

  it('an error inside of the stream ends the turn with an error', async () => {
    const marker = unique('in-band');
    cluster.model.on(marker, reply(say('go'), raw(`data: {"error":{"message":"overloaded","code":503}}\n\n`), cut()));
    const turn = await chat.turn(marker);
    await expectError(turn, turn.error?.code === 'model_unavailable' ? 'model_unavailable' : 'model_stream_broken');
  });

  it('an answer that is no stream at all ends the turn with an error', async () => {
    const marker = unique('html');
    cluster.model.on(marker, answerRaw(200, '<html>Welcome to nginx</html>', { 'content-type': 'text/html' }));
    const turn = await chat.turn(marker);
    expect(turn.error?.code).to.be.oneOf(['model_refused', 'model_unavailable', 'model_stream_broken']);
    await expectError(turn, turn.error?.code ?? '');
  });

  it('an empty answer: the turn ends, and the next history is still valid', async () => {
    const marker = unique('empty');
    cluster.model.on(marker, say());
    const turn = await chat.turn(marker);
    expect(turn.status).to.be.oneOf(['success', 'error']);
    expect((await chat.turn('Say something', { sessionId: turn.sessionId })).status).to.equal('success');
  });

  it('tool arguments that are not JSON: the model is told and goes on', async () => {
    for (const pieces of [['{"city": "Os', 'lo"'], ['[1, 2]'], ['"text"'], ['not json at all']]) {
      const marker = unique('bad-arguments');
      cluster.model.on(marker, callToolRaw('look', pieces), say('Sorry.'));
      const turn = await chat.turn(marker);
      expect(turn, JSON.stringify(pieces)).to.include({ text: 'Sorry.', status: 'success' });
      expect(turn.of('tool-result')[0]).to.include({ isError: true });
      const { body } = await cluster.model.request(marker, 2);
      expect(JSON.stringify(body.messages?.at(-1)?.content)).to.match(/JSON|argument|input|object/i);
      const { messages } = await chat.transcript(turn.sessionId);
      expect(messages[1]?.content[0]).to.deep.include({ type: 'tool-call', state: 'error' });
      expect((await chat.turn('Next', { sessionId: turn.sessionId })).status).to.equal('success');
    }
    expect(cluster.tools.callsOf('look'), 'calls of the tool itself').to.have.length(0);
  });

  it('a tool that does not exist: the model is told and goes on', async () => {
    const marker = unique('no-tool');
    cluster.model.on(marker, callToolRaw('teleport', ['{}']), say('Never mind.'));
    const turn = await chat.turn(marker);
    expect(turn).to.include({ text: 'Never mind.', status: 'success' });
    expect(turn.of('tool-result')[0]).to.include({ toolName: 'teleport', isError: true });
  });

  it('a model that never answers is left by Stop without a trace', async () => {
    const marker = unique('never');
    cluster.model.on(marker, never());
    const stream = await chat.send(marker);
    const { sessionId, executionId } = (await stream.until('execution-started')).data;
    await cluster.model.request(marker);
    await chat.stop(String(sessionId), String(executionId));
    expect((await stream.all()).at(-1)?.data).to.include({ status: 'cancelled' });
  });

  it('has shown the key to the model only, and to no log', async () => {
    const marker = unique('key');
    await chat.turn(marker);
    const { headers } = await cluster.model.request(marker);
    expect(headers.authorization).to.equal(`Bearer ${SECRET}`);
    for (const process of [...cluster.mains, ...cluster.workers]) {
      expect(process.output.join('\n').includes(SECRET), `the log of ${process.name}`).to.equal(false);
    }
  });
});
