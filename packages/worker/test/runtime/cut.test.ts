import type { AgentModel } from '@turnkeep/shared/contract/agent';
import { expect } from 'chai';
import { callsOf, failureOf, modelAt, type Spoken, speak, textOf, useEgress, user } from './speak.js';
import { useWireServer } from './wire-server.js';

const TEXT = 'Grüß 😀';
const INPUT = { city: 'Köln 🏰' };
const JSON_INPUT = JSON.stringify(INPUT);

/** The same answer, a text and then a call, as each provider sends it. */
const answers: Record<Exclude<AgentModel['provider'], 'demo'>, (object | string)[]> = {
  'openai-compatible': [
    { id: 'c', choices: [{ index: 0, delta: { role: 'assistant', content: TEXT } }] },
    {
      id: 'c',
      choices: [
        {
          index: 0,
          delta: {
            tool_calls: [{ index: 0, id: 'p1', type: 'function', function: { name: 'get_weather', arguments: '' } }],
          },
        },
      ],
    },
    { id: 'c', choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: JSON_INPUT } }] } }] },
    {
      id: 'c',
      choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }],
      usage: { prompt_tokens: 1, completion_tokens: 1 },
    },
    'data: [DONE]\n\n',
  ],
  anthropic: [
    {
      type: 'message_start',
      message: {
        id: 'm',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [],
        stop_reason: null,
        usage: { input_tokens: 1, output_tokens: 1 },
      },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: TEXT } },
    { type: 'content_block_stop', index: 0 },
    {
      type: 'content_block_start',
      index: 1,
      content_block: { type: 'tool_use', id: 'p1', name: 'get_weather', input: {} },
    },
    { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: JSON_INPUT } },
    { type: 'content_block_stop', index: 1 },
    { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: { output_tokens: 2 } },
    { type: 'message_stop' },
  ],
  openai: [
    { type: 'response.created', response: { id: 'r', created_at: 1, model: 'm' } },
    { type: 'response.output_item.added', output_index: 0, item: { type: 'message', id: 'm' } },
    { type: 'response.output_text.delta', item_id: 'm', output_index: 0, content_index: 0, delta: TEXT },
    { type: 'response.output_item.done', output_index: 0, item: { type: 'message', id: 'm' } },
    {
      type: 'response.output_item.added',
      output_index: 1,
      item: { type: 'function_call', id: 'f', call_id: 'p1', name: 'get_weather', arguments: '' },
    },
    { type: 'response.function_call_arguments.delta', item_id: 'f', output_index: 1, delta: JSON_INPUT },
    {
      type: 'response.output_item.done',
      output_index: 1,
      item: {
        type: 'function_call',
        id: 'f',
        call_id: 'p1',
        name: 'get_weather',
        arguments: JSON_INPUT,
        status: 'completed',
      },
    },
    {
      type: 'response.completed',
      response: { id: 'r', created_at: 1, model: 'm', usage: { input_tokens: 1, output_tokens: 1 } },
    },
  ],
  google: [
    { candidates: [{ content: { role: 'model', parts: [{ text: TEXT }] }, index: 0 }] },
    {
      candidates: [
        { content: { role: 'model', parts: [{ functionCall: { name: 'get_weather', args: INPUT } }] }, index: 0 },
      ],
    },
    {
      candidates: [{ content: { role: 'model', parts: [] }, finishReason: 'STOP', index: 0 }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 },
    },
  ],
};

/** A sample that meets every part of an event; `TURNKEEP_LONG` cuts at each byte. */
const STEP = process.env.TURNKEEP_LONG ? 1 : 13;

describe('an answer that is cut at any byte', () => {
  const egress = useEgress();
  const server = useWireServer();

  for (const [provider, events] of Object.entries(answers) as [keyof typeof answers, (object | string)[]][]) {
    const bytes = Buffer.from(
      events.map((event) => (typeof event === 'string' ? event : `data: ${JSON.stringify(event)}\n\n`)).join(''),
    );
    const ask = (end: number, how: 'ends' | 'breaks') => {
      server.answer = async (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        await new Promise((resolve) => response.write(bytes.subarray(0, end), resolve));
        if (how === 'ends') response.end();
        else response.destroy();
      };
      const model = modelAt(egress, `${server.url}/v1`, provider);
      return speak({ model, messages: [user('hi')], retryWaits: { backoffMs: 1, maxMs: 1 } });
    };

    it(`${provider}: the whole of it is text and a call`, async () => {
      const spoken = await ask(bytes.length, 'ends');
      expect(spoken.outcome?.finishReason).to.equal('tool-calls');
      expectNoTorso(spoken, 1);
    });

    for (const how of ['ends', 'breaks'] as const) {
      it(`${provider}: the stream ${how}`, async function () {
        this.timeout(120_000);
        for (let end = 1; end < bytes.length; end += STEP) {
          const spoken = await ask(end, how);
          if (spoken.outcome === undefined) expect(failureOf(spoken).code, `at ${end}`).to.equal('model_stream_broken');
          // What counts as the end of an answer stands in its last tenth at the earliest.
          else expect(end, 'an answer without its end').to.be.above(bytes.length * 0.7);
          expectNoTorso(spoken, spoken.outcome === undefined ? 0 : 1);
        }
      });
    }
  }
});

/** Text only from its beginning, and calls only whole. */
function expectNoTorso(spoken: Spoken, atLeast: number): void {
  expect(TEXT.startsWith(textOf(spoken))).to.equal(true);
  expect(callsOf(spoken).length).to.be.within(atLeast, 1);
  for (const call of callsOf(spoken)) {
    expect(call.input).to.deep.equal(INPUT);
    expect(call).not.to.have.property('invalid');
  }
}
