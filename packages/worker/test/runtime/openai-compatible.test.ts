import { expect } from 'chai';
import fc from 'fast-check';
import { gate } from '../../../../test/support/gate.js';
import { callTool, callToolRaw, raw, reply, say, think } from '../../../../test/support/model-script.js';
import { ModelServer } from '../../../../test/support/model-server.js';
import { toolMessage } from '../../src/runtime/tool-output.js';
import { callsOf, modelAt, outcomeOf, type Spoken, speak, textOf, useEgress, user, weatherTool } from './speak.js';

describe('a step with an OpenAI-compatible model', () => {
  const egress = useEgress();
  const server = new ModelServer();
  const ask = (marker: string, more: object = {}) =>
    speak({ model: modelAt(egress, server.baseUrl), messages: [user(marker)], ...more });

  before(() => server.start());
  after(() => server.stop());
  afterEach(() => expect(server.complaints.splice(0)).to.deep.equal([]));

  it('streams reasoning and text in their order, each block under an id of its own', async () => {
    server.on('plain', reply(think('Hm, ', 'well'), say('Hello', ' there')).withUsage(7, 5));
    const spoken = await ask('plain');
    const [thought, , , , text] = spoken.parts.map((part) => ('id' in part ? part.id : ''));
    expect(spoken.parts).to.deep.equal([
      { type: 'reasoning-start', id: thought },
      { type: 'reasoning-delta', id: thought, delta: 'Hm, ' },
      { type: 'reasoning-delta', id: thought, delta: 'well' },
      { type: 'reasoning-end', id: thought },
      { type: 'text-start', id: text },
      { type: 'text-delta', id: text, delta: 'Hello' },
      { type: 'text-delta', id: text, delta: ' there' },
      { type: 'text-end', id: text },
    ]);
    expect(text).not.to.equal(thought);
    expect(outcomeOf(spoken)).to.include({ finishReason: 'stop' });
    expect(outcomeOf(spoken).usage).to.deep.equal({ inputTokens: 7, outputTokens: 5 });
    expect(spoken.usage).to.deep.equal({ inputTokens: 7, outputTokens: 5 });
  });

  it('sends instructions, tools and the key as the provider expects them', async () => {
    server.on('request', say('ok'));
    await ask('request');
    const { headers, body } = await server.request('request');
    expect(headers.authorization).to.match(/^Bearer sk-test/);
    expect(body).to.deep.include({ model: 'test-model', stream: true, stream_options: { include_usage: true } });
    expect(body.messages).to.deep.equal([
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'request' },
    ]);
    expect(body.tools).to.deep.equal([
      {
        type: 'function',
        function: { name: 'get_weather', description: weatherTool.description, parameters: weatherTool.inputSchema },
      },
    ]);
  });

  it('hands on calls of one step under ids of its own, and its context answers them under the provider’s', async () => {
    server.on(
      'two calls',
      reply(say('Looking'), callTool('get_weather', { city: 'Rome' }, 'prov_1'), callTool('get_weather', {}, 'prov_2')),
      say('done'),
    );
    const spoken = await ask('two calls');
    const calls = callsOf(spoken);
    expect(calls.map(({ input }) => input)).to.deep.equal([{ city: 'Rome' }, {}]);
    expect(JSON.stringify(spoken.parts)).not.to.contain('prov_');
    const { messages, providerCallIds, finishReason } = outcomeOf(spoken);
    expect(finishReason).to.equal('tool-calls');
    expect(calls.map(({ callId }) => providerCallIds[callId])).to.deep.equal(['prov_1', 'prov_2']);
    const results = calls.map(({ callId, toolName }) => ({ callId, toolName, output: { sun: true }, isError: false }));
    const next = await ask('', {
      messages: [user('two calls'), ...messages, toolMessage(results, providerCallIds, 100)],
    });
    expect(textOf(next)).to.equal('done');
    const { body } = await server.request('two calls', 2);
    expect(body.messages?.slice(2).map((message) => message.tool_call_id)).to.deep.equal([
      undefined,
      'prov_1',
      'prov_2',
    ]);
  });

  it('lets the input arrive in pieces before the call', async () => {
    server.on('pieces', callTool('get_weather', { city: 'Zürich 🏔️' }));
    const spoken = await ask('pieces');
    const [start] = spoken.parts;
    expect(start).to.include({ type: 'tool-input-start', toolName: 'get_weather' });
    expect(JSON.parse(textOf(spoken, 'tool-input-delta'))).to.deep.equal({ city: 'Zürich 🏔️' });
    expect(callsOf(spoken)[0]).to.include({ callId: start && 'callId' in start ? start.callId : '' });
  });

  it('never gives the provider the same id twice, nor an empty one', async () => {
    server.on(
      'ids',
      reply(callTool('get_weather', {}, 'same'), callTool('get_weather', {}, 'same'), callTool('get_weather', {}, '')),
      callTool('get_weather', {}, 'same'),
      say('end'),
    );
    const answer = (spoken: Spoken) => {
      const { messages, providerCallIds } = outcomeOf(spoken);
      const results = callsOf(spoken).map(({ callId, toolName }) => ({
        callId,
        toolName,
        output: 'ok',
        isError: false,
      }));
      return {
        ids: Object.values(providerCallIds),
        messages: [...messages, toolMessage(results, providerCallIds, 100)],
      };
    };
    const first = answer(await ask('ids'));
    const second = answer(await ask('', { messages: [user('ids'), ...first.messages] }));
    await ask('', { messages: [user('ids'), ...first.messages, ...second.messages] });
    const ids = [...first.ids, ...second.ids];
    expect(new Set(ids).size).to.equal(4);
    expect(ids[0]).to.equal('same');
    for (const id of ids) expect(id).to.match(/^[a-zA-Z0-9_-]{1,40}$/);
  });

  it('turns arguments that are no JSON object into {} with a message for the model', async () => {
    for (const [index, pieces] of [['{"city": '], ['"Rome"'], ['[1, 2]'], ['null'], ['nonsense']].entries()) {
      server.on(`bad ${index}`, callToolRaw('get_weather', pieces), say('sorry'));
      const spoken = await ask(`bad ${index}`);
      const [call] = callsOf(spoken);
      expect(call).to.deep.include({
        input: {},
        invalid: 'The arguments are not a JSON object, so the tool was not called.',
      });
      const { messages, providerCallIds } = outcomeOf(spoken);
      const result = { callId: call!.callId, toolName: call!.toolName, output: call!.invalid!, isError: true };
      await ask('', { messages: [user(`bad ${index}`), ...messages, toolMessage([result], providerCallIds, 100)] });
    }
  });

  it('takes no arguments at all for an empty object', async () => {
    server.on('no arguments', callToolRaw('get_weather', []));
    expect(callsOf(await ask('no arguments'))[0])
      .to.deep.include({ input: {} })
      .and.not.to.have.property('invalid');
  });

  it('tells the model about a tool that does not exist, under a name that a strict provider takes back', async () => {
    server.on('no tool', callTool('functions.get weather', { a: 1 }, 'x1'), say('sorry'));
    const spoken = await ask('no tool');
    const [call] = callsOf(spoken);
    expect(call).to.include({
      toolName: 'functions_get_weather',
      invalid: 'There is no tool named functions_get_weather.',
    });
    const { messages, providerCallIds } = outcomeOf(spoken);
    const result = { callId: call!.callId, toolName: call!.toolName, output: call!.invalid!, isError: true };
    await ask('', { messages: [user('no tool'), ...messages, toolMessage([result], providerCallIds, 100)] });
  });

  it('takes a call of a tool where none is offered for one that does not exist', async () => {
    server.on('none offered', callTool('get_weather', { a: 1 }));
    const spoken = await ask('none offered', { tools: [] });
    expect(callsOf(spoken)[0]).to.include({ invalid: 'There is no tool named get_weather.' });
  });

  it('takes arguments that would set a prototype for invalid ones', async () => {
    server.on('proto', callToolRaw('get_weather', ['{"__proto__": {"a": 1}, "city": "Rome"}']));
    expect(callsOf(await ask('proto'))[0])
      .to.deep.include({ input: {} })
      .and.have.property('invalid');
  });

  it('gives an empty answer as no message', async () => {
    server.on('empty', reply());
    const spoken = await ask('empty');
    expect(spoken.parts).to.deep.equal([]);
    expect(outcomeOf(spoken)).to.deep.include({ messages: [], finishReason: 'stop' });
  });

  it('gives an answer of nothing but reasoning or white space as no message', async () => {
    server.on('blank', reply(think('hm'), say(' \n')));
    expect(outcomeOf(await ask('blank')).messages).to.deep.equal([]);
  });

  it('gives reasoning back within the run where the provider speaks reasoning_content', async () => {
    server.on('thinks', reply(think('hm'), callTool('get_weather', {}, 'a1')), say('ok'));
    const spoken = await ask('thinks');
    const { messages, providerCallIds } = outcomeOf(spoken);
    const results = callsOf(spoken).map(({ callId, toolName }) => ({ callId, toolName, output: 'ok', isError: false }));
    await ask('', { messages: [user('thinks'), ...messages, toolMessage(results, providerCallIds, 100)] });
    const { body } = await server.request('thinks', 2);
    expect(body.messages?.[2]).to.include({ reasoning_content: 'hm' });
  });

  it('does not send reasoning_content to a provider that says `reasoning`', async () => {
    const chunk = { id: 'x', created: 1, model: 'm', choices: [{ index: 0, delta: { reasoning: 'hm' } }] };
    server.on('says reasoning', reply(raw(`data: ${JSON.stringify(chunk)}\n\n`), say('ok')));
    const spoken = await ask('says reasoning');
    expect(textOf(spoken, 'reasoning-delta')).to.equal('hm');
    expect(outcomeOf(spoken).messages).to.deep.equal([{ role: 'assistant', content: [{ type: 'text', text: 'ok' }] }]);
  });

  it('keeps characters whole that TCP chunks split', async () => {
    const text = 'a é 漢 🧑‍🚀 שלום ẹ̀';
    server.on('bytewise', reply(say(text), callTool('get_weather', { city: text })).bytewise());
    const spoken = await ask('bytewise');
    expect(textOf(spoken)).to.equal(text);
    expect(callsOf(spoken)[0]?.input).to.deep.equal({ city: text });
  });

  it('joins surrogate halves of two deltas, and replaces what Postgres cannot store', async () => {
    server.on(
      'surrogates',
      reply(
        say('x\ud83d', '\ude00y', 'z\ud83d', 'no half', '\0', 'end\ud83d'),
        callToolRaw('get_weather', ['{"ci\\u0000ty":"\\ud83d', '\\ude00 \\ud83d"}']),
      ),
    );
    const spoken = await ask('surrogates');
    const deltas = spoken.parts.flatMap((part) => (part.type === 'text-delta' ? [part.delta] : []));
    expect(deltas).to.deep.equal(['x', '😀y', 'z', '\uFFFDno half', '\uFFFD', 'end', '\uFFFD']);
    expect(callsOf(spoken)[0]?.input).to.deep.equal({ 'ci\uFFFDty': '😀 \uFFFD' });
    expect(JSON.stringify(outcomeOf(spoken).messages)).to.contain('x😀yz\uFFFDno half\uFFFDend\uFFFD');
  });

  it('hands a very long delta on in several that fit into an event, whatever is in it', async () => {
    const text = `${'\u0001'.repeat(30_001)}${'😀'.repeat(20_000)}`;
    server.on('very long', reply(say(text), callTool('get_weather', { city: text })));
    const spoken = await ask('very long');
    expect(textOf(spoken)).to.equal(text);
    expect(callsOf(spoken)[0]?.input).to.deep.equal({ city: text });
    for (const part of spoken.parts) {
      if (!('delta' in part)) continue;
      expect(part.delta.isWellFormed()).to.equal(true);
      expect(Buffer.byteLength(JSON.stringify(part))).to.be.below(60_000);
    }
  });

  it('sends no system message where the agent has no instructions', async () => {
    server.on('no instructions', say('ok'));
    await ask('no instructions', { instructions: ' \n' });
    expect((await server.request('no instructions')).body.messages).to.have.length(1);
  });

  it('reads no faster than its parts are taken', async () => {
    server.on('slow reader', say(...Array.from({ length: 20 }, (_, index) => `${index} `)));
    const held = gate();
    let inside = 0;
    let most = 0;
    const running = ask('slow reader', {
      onPart: async () => {
        most = Math.max(most, ++inside);
        await held.pass(new Promise(() => {}));
        inside -= 1;
      },
    });
    await held.reached();
    held.open();
    expect(textOf(await running)).to.equal(Array.from({ length: 20 }, (_, index) => `${index} `).join(''));
    expect(most).to.equal(1);
  });

  it('ends with what its reader throws, as it is, and lets the model go', async () => {
    server.on('reader fails', say(...Array.from({ length: 50 }, () => 'word '), gate()));
    const fault = new Error('the lease is lost');
    const { error } = await ask('reader fails', { onPart: () => Promise.reject(fault) });
    expect(error).to.equal(fault);
    await server.idle();
  });

  it('keeps any text whole, however it is cut into deltas', async () => {
    const anyText = fc.string({ unit: 'binary', minLength: 1, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(fc.uuid(), anyText, fc.array(fc.nat(80), { maxLength: 6 }), async (marker, text, cuts) => {
        const at = [0, ...cuts.map((cut) => cut % (text.length + 1)).sort((a, b) => a - b), text.length];
        const pieces = at.slice(1).map((end, index) => text.slice(at[index], end));
        server.on(marker, say(...pieces));
        const spoken = await ask(marker);
        for (const part of spoken.parts) if ('delta' in part) expect(part.delta.isWellFormed()).to.equal(true);
        expect(textOf(spoken)).to.equal(text.replaceAll('\0', '\uFFFD'));
      }),
      { numRuns: 60 },
    );
  });
});
