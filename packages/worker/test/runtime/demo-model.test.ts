import type { ModelMessage } from 'ai';
import { expect } from 'chai';
import { createDemoModel } from '../../src/runtime/demo-model.js';
import { toolMessage } from '../../src/runtime/tool-output.js';
import { callsOf, outcomeOf, type Spoken, speak, textOf, user, weatherTool } from './speak.js';

describe('the demo model', () => {
  const model = createDemoModel('demo', 0);
  const tool = (name: string, properties: object) => ({
    name,
    description: '',
    inputSchema: { type: 'object', properties },
  });

  it('explains what one can try, with reasoning and text in pieces', async () => {
    const spoken = await speak({ model, messages: [user('hello there')] });
    expect(textOf(spoken)).to.contain('hello there').and.contain('weather').and.contain('`get_weather`');
    expect(textOf(spoken, 'reasoning-delta')).to.not.equal('');
    expect(spoken.parts.length).to.be.above(50);
    const { usage, finishReason } = outcomeOf(spoken);
    expect(finishReason).to.equal('stop');
    expect(usage.inputTokens).to.be.above(0);
    expect(usage.outputTokens).to.be.above(50);
  });

  it('takes its time, as a model does', async () => {
    const start = performance.now();
    const spoken = await speak({ model: createDemoModel('demo', 15), messages: [user('weather')] });
    expect(performance.now() - start).to.be.above(10 * spoken.parts.length);
  });

  it('gives the same answer to the same conversation', async () => {
    const texts = await Promise.all([1, 2].map(() => speak({ model, messages: [user('hello')] })));
    expect(textOf(texts[0]!)).to.equal(textOf(texts[1]!));
  });

  it('calls the weather tool for the place that was named, and says what came of it', async () => {
    const question = user('What is the weather in New York today?');
    const spoken = await speak({ model, messages: [question] });
    expect(callsOf(spoken)[0]).to.deep.include({ toolName: 'get_weather', input: { city: 'New York' } });
    const end = await speak({ model, messages: [question, ...answered(spoken, 'sunny, 21 °C', false)] });
    expect(textOf(end)).to.contain('get_weather').and.contain('sunny, 21 °C');
    expect(callsOf(end)).to.deep.equal([]);
    const failed = await speak({ model, messages: [question, ...answered(spoken, 'it rained on the server', true)] });
    expect(textOf(failed)).to.contain('did not work').and.contain('it rained on the server');
  });

  it('uses another id for each call of a conversation', async () => {
    const messages: ModelMessage[] = [];
    const ids: string[] = [];
    for (const place of ['Rome', 'Oslo']) {
      messages.push(user(`weather in ${place}`));
      const spoken = await speak({ model, messages });
      ids.push(...Object.values(outcomeOf(spoken).providerCallIds));
      messages.push(...answered(spoken, 'sun', false));
    }
    expect(ids).to.deep.equal(['demo-1', 'demo-2']);
  });

  it('explains instead of calling where no tool is offered', async () => {
    const spoken = await speak({ model, messages: [user('weather?')], tools: [] });
    expect(callsOf(spoken)).to.deep.equal([]);
    expect(textOf(spoken)).to.contain('No tool is offered');
  });

  const wishes: [string, string, object, object][] = [
    [
      'please ask me a question',
      'ask_user',
      { question: { type: 'string' }, choices: { type: 'array' } },
      { question: 'Which season do you like best?', choices: ['Spring', 'Summer', 'Autumn', 'Winter'] },
    ],
    ['let a helper research cats', 'researcher', { task: { type: 'string' } }, { task: 'let a helper research cats' }],
    [
      'send a postcard to Ada Lovelace',
      'send_postcard',
      { to: { type: 'string' }, text: { type: 'string' } },
      { to: 'Ada Lovelace', text: 'Greetings from the demo model.' },
    ],
    [
      'delete it all',
      'delete_file',
      { force: { type: 'boolean' }, times: { type: 'integer' } },
      { force: true, times: 1 },
    ],
    [
      'use special_tool now',
      'special_tool',
      { mode: { enum: ['fast', 'slow'] }, of: { type: 'array' } },
      { mode: 'fast', of: [] },
    ],
  ];
  for (const [said, name, properties, input] of wishes) {
    it(`answers '${said}' with ${name}`, async () => {
      const spoken = await speak({ model, messages: [user(said)], tools: [weatherTool, tool(name, properties)] });
      expect(callsOf(spoken)[0]).to.deep.include({ toolName: name, input });
      expect(callsOf(spoken)[0]).not.to.have.property('invalid');
    });
  }

  it('says what to type for each tool that it is offered, and for no other', async () => {
    const tools = [weatherTool, tool('send_postcard', {}), tool('ask_user', {}), tool('researcher', {})];
    const all = textOf(await speak({ model, messages: [user('hello')], tools }));
    for (const words of ['weather in Paris', 'postcard to Ada', 'Ask me a question', 'Let the researcher'])
      expect(all).to.contain(words);
    expect(textOf(await speak({ model, messages: [user('hello')], tools: [weatherTool] }))).not.to.contain('postcard');
  });

  it('stops in the middle of a long answer', async () => {
    const controller = new AbortController();
    const reason = new DOMException('stopped by the user', 'AbortError');
    const spoken = await speak({
      model,
      messages: [user('tell me a long story')],
      abortSignal: controller.signal,
      onPart: (part) => {
        if (part.type === 'text-delta') controller.abort(reason);
      },
    });
    expect(spoken.error).to.equal(reason);
    expect(spoken.parts.filter(({ type }) => type === 'text-delta')).to.have.length(1);
  });
});

function answered(spoken: Spoken, output: string, isError: boolean): ModelMessage[] {
  const { messages, providerCallIds } = outcomeOf(spoken);
  const results = callsOf(spoken).map(({ callId, toolName }) => ({ callId, toolName, output, isError }));
  return [...messages, toolMessage(results, providerCallIds, 1000)];
}
