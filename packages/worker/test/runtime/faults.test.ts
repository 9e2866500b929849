import { inspect } from 'node:util';
import { expect } from 'chai';
import { gate } from '../../../../test/support/gate.js';
import {
  answerRaw,
  callTool,
  callToolRaw,
  cut,
  never,
  raw,
  refuse,
  reply,
  say,
  think,
} from '../../../../test/support/model-script.js';
import { ModelServer } from '../../../../test/support/model-server.js';
import {
  API_KEY,
  callsOf,
  failureOf,
  modelAt,
  outcomeOf,
  speak,
  textOf,
  useEgress,
  useNamelessEgress,
  user,
} from './speak.js';
import { freePort } from './wire-server.js';

/** Make the wait between two tries short. */
const QUICK = { 'retry-after-ms': '5' };
const retryWaits = { backoffMs: 5, maxMs: 5 };

describe('faults of a model', () => {
  const egress = useEgress();
  const nameless = useNamelessEgress();
  const server = new ModelServer();
  const ask = (marker: string, more: object = {}) =>
    speak({ model: modelAt(egress, server.baseUrl), messages: [user(marker)], ...more });
  const rejections: unknown[] = [];
  const printed: unknown[][] = [];
  const noteRejection = (reason: unknown) => rejections.push(reason);
  const { error: consoleError, warn: consoleWarn } = console;

  before(async () => {
    await server.start();
    process.on('unhandledRejection', noteRejection);
    console.error = console.warn = (...args: unknown[]) => printed.push(args);
  });
  after(async () => {
    await server.stop();
    process.off('unhandledRejection', noteRejection);
    Object.assign(console, { error: consoleError, warn: consoleWarn });
  });
  afterEach(async () => {
    await server.idle();
    await new Promise(setImmediate);
    expect(rejections.splice(0)).to.deep.equal([]);
    expect(printed.splice(0)).to.deep.equal([]);
    server.complaints.splice(0);
  });

  it('a refused connection is model_unavailable, and shows no address', async () => {
    const port = await freePort();
    const spoken = await speak({
      model: modelAt(egress, `http://127.0.0.1:${port}/v1`),
      messages: [user('hi')],
      retryWaits,
    });
    expect(failureOf(spoken).code).to.equal('model_unavailable');
    expect(failureOf(spoken).message)
      .to.match(/cannot be reached/)
      .and.not.contain('127.0.0.1');
  });

  it('a name that does not resolve is model_unavailable', async () => {
    const spoken = await speak({
      model: modelAt(nameless, 'http://no-such-host.invalid/v1'),
      messages: [user('hi')],
      retryWaits,
    });
    expect(failureOf(spoken)).to.include({ code: 'model_unavailable' });
  });

  const refusals: [number, string, RegExp][] = [
    [400, 'temperature must be below 2', /refused the request \(400\): temperature must be below 2\./],
    [401, `Incorrect API key provided: ${API_KEY}`, /refused the credential \(401\). Check the API key/],
    [402, 'Insufficient balance', /asks for payment \(402\): Insufficient balance/],
    [403, 'not your model', /refused the credential \(403\)/],
    [404, "model 'test-model' not found", /does not exist \(404\): model 'test-model' not found/],
    [422, 'bad body', /refused the request \(422\): bad body/],
    [400, "This model's maximum context length is 4096 tokens", /no longer fits into the model: .*Start a new session/],
    [413, '', /no longer fits into the model/],
    [500, 'the input exceeds the context window', /no longer fits into the model/],
  ];
  for (const [status, words, message] of refusals) {
    it(`${status} '${words.slice(0, 30)}' is model_refused and says why`, async () => {
      server.on('refused', ...Array.from({ length: 3 }, () => refuse(status, words, QUICK)));
      const failure = failureOf(await ask('refused'));
      expect(failure).to.include({ code: 'model_refused' });
      expect(failure.message).to.match(message).and.not.contain(API_KEY);
    });
  }

  it('takes the credential, addresses and control characters out of the provider’s words, and cuts them', async () => {
    const words = `key ${API_KEY} at http://10.0.0.7:11434/v1?key=1, 10.0.0.8:80 or [fd00::1]:443\n\0 ${'x'.repeat(400)}`;
    server.on('chatty', refuse(400, words));
    const { message } = failureOf(await ask('chatty'));
    expect(message).to.contain('key [credential] at [address] [address] or [address] � xxx');
    expect(message.length).to.be.below(400);
  });

  it('a failure’s cause, which goes to the log, holds neither the request nor the credential', async () => {
    server.on('my secret diary', refuse(400, `no ${API_KEY}`));
    const { cause } = failureOf(await ask('my secret diary'));
    expect(inspect(cause, { depth: 10, showHidden: true }))
      .to.contain('AI_APICallError 400')
      .and.not.contain(API_KEY)
      .and.not.contain('diary');
  });

  for (const [body, words] of [
    ['{"error":"model is gone"}', 'model is gone'],
    ['{"detail":"no such route"}', 'no such route'],
    ['<html>nope</html>', 'Bad Request'],
    ['', 'Bad Request'],
  ] as const) {
    it(`finds the reason in the body ${body}`, async () => {
      server.on('odd body', answerRaw(400, body));
      expect(failureOf(await ask('odd body')).message).to.contain(words);
    });
  }

  it('tries a 429 again after Retry-After, and then answers', async () => {
    server.on('busy', refuse(429, 'slow down', { 'retry-after': '1' }), say('here I am'));
    const spoken = await ask('busy');
    expect(textOf(spoken)).to.equal('here I am');
    const [first, second] = server.requestsFor('busy');
    expect(second!.at - first!.at).to.be.within(990, 1900);
  });

  it('tries a 429 and a 5xx twice again, then it is model_unavailable', async () => {
    for (const status of [429, 500, 503]) {
      server.on(`always ${status}`, ...Array.from({ length: 3 }, () => refuse(status, 'overloaded', QUICK)));
      const failure = failureOf(await ask(`always ${status}`));
      expect(failure).to.include({ code: 'model_unavailable' });
      expect(failure.message).to.match(/Try again in a while\.$/);
      expect(server.requestsFor(`always ${status}`)).to.have.length(3);
    }
  });

  it('waits no longer than the bound, whatever Retry-After asks for', async () => {
    server.on('patience', refuse(429, 'slow down', { 'retry-after': '59' }), say('already'));
    expect(textOf(await ask('patience', { retryWaits: { backoffMs: 1, maxMs: 50 } }))).to.equal('already');
  });

  it('does not try again once something has been said', async () => {
    server.on('said', reply(say('Once'), cut()), say('twice'));
    const spoken = await ask('said');
    expect(textOf(spoken)).to.equal('Once');
    expect(failureOf(spoken)).to.include({ code: 'model_stream_broken' });
    expect(server.requestsFor('said')).to.have.length(1);
  });

  it('a stream that ends without a finish is model_stream_broken', async () => {
    server.on('no finish', answerRaw(200, sse({ choices: [{ index: 0, delta: { content: 'Hel' } }] }), EVENT_STREAM));
    const spoken = await ask('no finish');
    expect(textOf(spoken)).to.equal('Hel');
    expect(failureOf(spoken)).to.include({ code: 'model_stream_broken' });
  });

  it('an answer without a body is model_stream_broken', async () => {
    server.on('no body', answerRaw(200, '', EVENT_STREAM));
    expect(failureOf(await ask('no body'))).to.include({ code: 'model_stream_broken' });
  });

  it('leaves a call out whose arguments were cut', async () => {
    for (const [index, pieces] of [['{"city": "Ro'], [], ['']].entries()) {
      server.on(`torso ${index}`, reply(callToolRaw('get_weather', pieces), cut()));
      const spoken = await ask(`torso ${index}`);
      expect(callsOf(spoken)).to.deep.equal([]);
      expect(failureOf(spoken)).to.include({ code: 'model_stream_broken' });
    }
  });

  it('leaves a call out where the stream ended cleanly in the middle of its arguments', async () => {
    const call = { index: 0, id: 'c', type: 'function', function: { name: 'get_weather', arguments: '{"city": "R' } };
    server.on(
      'clean torso',
      answerRaw(200, sse({ choices: [{ index: 0, delta: { tool_calls: [call] } }] }), EVENT_STREAM),
    );
    const spoken = await ask('clean torso');
    expect(callsOf(spoken)).to.deep.equal([]);
    expect(failureOf(spoken)).to.include({ code: 'model_stream_broken' });
  });

  it('a chunk that cannot be read is model_stream_broken', async () => {
    for (const [index, chunk] of [
      'data: {"choices": [{\n\n',
      'data: {"choices": 7}\n\n',
      'data: nonsense\n\n',
    ].entries()) {
      server.on(`malformed ${index}`, reply(say('Hel'), raw(chunk), say('lo')));
      const spoken = await ask(`malformed ${index}`);
      expect(textOf(spoken)).to.equal('Hel');
      expect(failureOf(spoken)).to.include({ code: 'model_stream_broken' });
    }
  });

  it('ignores comments and fields of the stream that it does not know', async () => {
    server.on('comments', reply(raw(': OPENROUTER PROCESSING\n\n'), raw('event: ping\nretry: 3\n\n'), say('fine')));
    expect(textOf(await ask('comments'))).to.equal('fine');
  });

  it('takes an HTML page in place of a stream for broken', async () => {
    server.on('page', answerRaw(200, '<html>hello</html>', { 'content-type': 'text/html' }));
    expect(failureOf(await ask('page'))).to.include({ code: 'model_stream_broken' });
  });

  for (const [error, code] of [
    [{ message: `overloaded ${API_KEY}`, code: 503 }, 'model_unavailable'],
    [{ message: 'slow down', code: 429 }, 'model_unavailable'],
    [{ message: 'bad temperature', code: 400 }, 'model_refused'],
    [{ message: "exceeds the model's context length" }, 'model_refused'],
    [{ message: 'out of cheese' }, 'model_stream_broken'],
  ] as const) {
    it(`an error in the stream, '${error.message.slice(0, 20)}', is ${code}`, async () => {
      server.on('in stream', reply(say('Hel'), raw(sse({ error }))));
      const failure = failureOf(await ask('in stream'));
      expect(failure).to.include({ code });
      expect(failure.message).not.to.contain(API_KEY);
    });
  }

  it('an abort ends silence before the first byte at once, with the signal’s reason', async () => {
    server.on('silent', never());
    const { controller, reason } = abortable();
    const running = ask('silent', { abortSignal: controller.signal });
    const request = await server.request('silent');
    controller.abort(reason);
    expect((await running).error).to.equal(reason);
    expect(await request.over).to.equal('aborted');
  });

  it('an abort in the middle ends the answer, and nothing comes after it', async () => {
    server.on('middle', reply(say('Hel'), never()));
    const { controller, reason } = abortable();
    const spoken = await ask('middle', {
      abortSignal: controller.signal,
      onPart: (part: { type: string }) => part.type === 'text-delta' && controller.abort(reason),
    });
    expect(spoken.error).to.equal(reason);
    expect(spoken.parts.at(-1)).to.include({ type: 'text-delta', delta: 'Hel' });
    expect(await (await server.request('middle')).over).to.equal('aborted');
  });

  it('an abort ends the wait before another try', async () => {
    server.on('waits', refuse(429, 'slow down', { 'retry-after': '15' }));
    const { controller, reason } = abortable();
    const running = ask('waits', { abortSignal: controller.signal });
    await (await server.request('waits')).over;
    controller.abort(reason);
    expect((await running).error).to.equal(reason);
    expect(server.requestsFor('waits')).to.have.length(1);
  });

  it('an abort at any part ends there, and leaves nothing open', async () => {
    const answer = () => reply(think('hm'), say('a', 'b'), callTool('get_weather', { city: 'Rome' }));
    server.on('whole', answer());
    const { parts } = await ask('whole');
    for (const nth of parts.keys()) {
      server.on(`stop at ${nth}.`, answer());
      const { controller, reason } = abortable();
      let seen = 0;
      const onPart = () => (seen++ === nth ? controller.abort(reason) : undefined);
      const spoken = await ask(`stop at ${nth}.`, { abortSignal: controller.signal, onPart });
      expect(spoken.error).to.equal(reason);
      expect(spoken.parts).to.have.length(nth + 1);
      await server.idle();
    }
  });

  it('an abort does not wait for a reader that hangs', async () => {
    server.on('hanging reader', say('Hel', 'lo'));
    const { controller, reason } = abortable();
    const held = gate();
    const running = ask('hanging reader', {
      abortSignal: controller.signal,
      onPart: () => held.pass(new Promise(() => {})),
    });
    await held.reached();
    controller.abort(reason);
    expect((await running).error).to.equal(reason);
    held.open();
  });

  it('a signal that is already aborted makes no request', async () => {
    const { controller, reason } = abortable();
    controller.abort(reason);
    expect((await ask('too late', { abortSignal: controller.signal })).error).to.equal(reason);
    expect(server.requestsFor('too late')).to.deep.equal([]);
  });

  it('what is no fault of the model is internal and says nothing of itself', async () => {
    const failure = failureOf(await ask('ignored', { messages: [] }));
    expect(failure).to.include({
      code: 'internal',
      message: 'Something went wrong on our side. Send the message again.',
    });
  });

  it('a hundred turns at once share the way out', async () => {
    const held = gate();
    server.on('crowd', ...Array.from({ length: 100 }, () => say('a', held, 'b')));
    const crowd = Array.from({ length: 100 }, () => ask('crowd'));
    await server.request('crowd', 100);
    held.open();
    for (const spoken of await Promise.all(crowd)) expect(outcomeOf(spoken).finishReason).to.equal('stop');
  });
});

const EVENT_STREAM = { 'content-type': 'text/event-stream' };

function sse(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

function abortable() {
  return { controller: new AbortController(), reason: new DOMException('stopped by the user', 'AbortError') };
}
