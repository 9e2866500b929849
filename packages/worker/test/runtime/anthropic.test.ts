import { expect } from 'chai';
import { toolMessage } from '../../src/runtime/tool-output.js';
import { API_KEY, callsOf, failureOf, modelAt, outcomeOf, speak, textOf, useEgress, user } from './speak.js';
import { useWireServer } from './wire-server.js';

describe('a step with Anthropic', () => {
  const egress = useEgress();
  const server = useWireServer();
  const ask = (messages = [user('hi')]) => speak({ model: modelAt(egress, `${server.url}/v1`, 'anthropic'), messages });

  it('streams text', async () => {
    server.streams(
      ...message([
        { type: 'text', text: '' },
        { type: 'text_delta', text: 'Grüß' },
        { type: 'text_delta', text: ' Gott' },
      ]),
    );
    const spoken = await ask();
    expect(textOf(spoken)).to.equal('Grüß Gott');
    expect(outcomeOf(spoken)).to.deep.include({ finishReason: 'stop', usage: { inputTokens: 11, outputTokens: 9 } });
    expect(server.last).to.include({ method: 'POST', url: '/v1/messages' });
    expect(server.last.headers).to.include({ 'x-api-key': API_KEY });
    expect(server.lastJson).to.deep.include({ model: 'test-model', stream: true });
    expect(server.lastJson.system).to.deep.equal([{ type: 'text', text: 'Be kind.' }]);
  });

  it('calls a tool, and gives signed thinking back with the result', async () => {
    server.streams(
      ...message(
        [
          { type: 'thinking', thinking: '' },
          { type: 'thinking_delta', thinking: 'look' },
          { type: 'signature_delta', signature: 'c2lnbmVk' },
        ],
        [
          { type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: {} },
          { type: 'input_json_delta', partial_json: '{"city":' },
          { type: 'input_json_delta', partial_json: '"Rome"}' },
        ],
      ),
    );
    const spoken = await ask();
    expect(textOf(spoken, 'reasoning-delta')).to.equal('look');
    expect(callsOf(spoken)[0]?.input).to.deep.equal({ city: 'Rome' });
    const { messages, providerCallIds } = outcomeOf(spoken);
    const results = callsOf(spoken).map(({ callId, toolName }) => ({
      callId,
      toolName,
      output: 'sun',
      isError: false,
    }));
    server.streams(
      ...message([
        { type: 'text', text: '' },
        { type: 'text_delta', text: 'Sunny' },
      ]),
    );
    // What a run keeps between two steps may have been stored as JSON.
    await ask(JSON.parse(JSON.stringify([user('hi'), ...messages, toolMessage(results, providerCallIds, 100)])));
    expect(server.lastJson.messages.slice(1)).to.deep.equal([
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'look', signature: 'c2lnbmVk' },
          { type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: { city: 'Rome' } },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'sun' }] },
    ]);
  });

  it('says why a request was refused', async () => {
    server.answer = (_, response) => {
      response.writeHead(400, { 'content-type': 'application/json' });
      const error = { type: 'invalid_request_error', message: 'prompt is too long: 212000 tokens > 200000 maximum' };
      response.end(JSON.stringify({ type: 'error', error }));
    };
    const failure = failureOf(await ask());
    expect(failure).to.include({ code: 'model_refused' });
    expect(failure.message).to.contain('no longer fits into the model').and.contain('prompt is too long');
  });

  it('an error event in the stream and a stream without its end fail', async () => {
    const [start, block, delta] = message([
      { type: 'text', text: '' },
      { type: 'text_delta', text: 'Hel' },
    ]);
    server.streams(start!, block!, delta!, [
      'error',
      { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
    ]);
    expect(failureOf(await ask()).code).to.be.oneOf(['model_unavailable', 'model_stream_broken']);
    server.streams(start!, block!, delta!);
    const spoken = await ask();
    expect(textOf(spoken)).to.equal('Hel');
    expect(failureOf(spoken)).to.include({ code: 'model_stream_broken' });
  });

  it('knows what a request has cost so far, also where it is stopped', async () => {
    const events = message([
      { type: 'text', text: '' },
      { type: 'text_delta', text: 'Hel' },
    ]);
    server.streams(...events.slice(0, 3));
    expect((await ask()).usage).to.deep.equal({ inputTokens: 11, outputTokens: 1 });
  });

  it('leaves a call out whose arguments were cut', async () => {
    const events = message([
      { type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: {} },
      { type: 'input_json_delta', partial_json: '{"city":' },
    ]);
    server.streams(...events.slice(0, 3));
    const spoken = await ask();
    expect(callsOf(spoken)).to.deep.equal([]);
    expect(failureOf(spoken)).to.include({ code: 'model_stream_broken' });
  });
});

type Json = Record<string, unknown> & { type: string };

/** A whole message: each block is its `content_block`, followed by its deltas. */
function message(...blocks: [Json, ...Json[]][]): [string, object][] {
  const usage = { input_tokens: 11, output_tokens: 1 };
  const calls = blocks.some(([{ type }]) => type === 'tool_use');
  const events: Json[] = [
    {
      type: 'message_start',
      message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, usage },
    },
    ...blocks.flatMap(([block, ...deltas], index) => [
      { type: 'content_block_start', index, content_block: block },
      ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ]),
    {
      type: 'message_delta',
      delta: { stop_reason: calls ? 'tool_use' : 'end_turn', stop_sequence: null },
      usage: { output_tokens: 9 },
    },
    { type: 'message_stop' },
  ];
  return events.map((event) => [event.type, event]);
}
