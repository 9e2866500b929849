import { expect } from 'chai';
import { toolMessage } from '../../src/runtime/tool-output.js';
import { API_KEY, callsOf, failureOf, modelAt, outcomeOf, speak, textOf, useEgress, user } from './speak.js';
import { useWireServer } from './wire-server.js';

describe('a step with OpenAI', () => {
  const egress = useEgress();
  const server = useWireServer();
  const ask = (messages = [user('hi')]) => speak({ model: modelAt(egress, `${server.url}/v1`, 'openai'), messages });

  it('streams text by the Responses API, and has nothing stored there', async () => {
    server.streams(...response(textItem('Hel', 'lo')));
    const spoken = await ask();
    expect(textOf(spoken)).to.equal('Hello');
    expect(outcomeOf(spoken)).to.deep.include({ finishReason: 'stop', usage: { inputTokens: 11, outputTokens: 9 } });
    expect(server.last).to.include({ method: 'POST', url: '/v1/responses' });
    expect(server.last.headers).to.include({ authorization: `Bearer ${API_KEY}` });
    expect(server.lastJson).to.deep.include({ model: 'test-model', stream: true, store: false });
  });

  it('calls a tool, and gives the call back with its result, in full and not by reference', async () => {
    server.streams(...response(textItem('Looking'), callItem('fc_1', 'call_prov', '{"city":"Rome"}')));
    const spoken = await ask();
    expect(callsOf(spoken)[0]?.input).to.deep.equal({ city: 'Rome' });
    const { messages, providerCallIds, finishReason } = outcomeOf(spoken);
    expect(finishReason).to.equal('tool-calls');
    const results = callsOf(spoken).map(({ callId, toolName }) => ({
      callId,
      toolName,
      output: 'sun',
      isError: false,
    }));
    server.streams(...response(textItem('Sunny')));
    await ask(JSON.parse(JSON.stringify([user('hi'), ...messages, toolMessage(results, providerCallIds, 100)])));
    const input = server.lastJson.input as { type?: string; role?: string; call_id?: string; output?: string }[];
    expect(input.map(({ type, role }) => type ?? role)).to.not.include('item_reference');
    expect(input.find(({ type }) => type === 'function_call')).to.include({ call_id: 'call_prov' });
    expect(input.at(-1)).to.deep.include({ type: 'function_call_output', call_id: 'call_prov', output: 'sun' });
  });

  it('says why a request was refused', async () => {
    server.answer = (_, reply) => {
      reply.writeHead(400, { 'content-type': 'application/json' });
      reply.end(
        JSON.stringify({
          error: { message: 'Unknown parameter', type: 'invalid_request_error', param: null, code: null },
        }),
      );
    };
    expect(failureOf(await ask()))
      .to.include({ code: 'model_refused' })
      .and.property('message')
      .contain('Unknown parameter');
  });

  it('a failed response and a stream without its end fail', async () => {
    const events = response(textItem('Hel'));
    const error = { code: 'server_error', message: 'The server had an error' };
    server.streams(...events.slice(0, -1), {
      type: 'response.failed',
      sequence_number: 9,
      response: { error, usage: null },
    });
    expect(failureOf(await ask()).code).to.be.oneOf(['model_unavailable', 'model_stream_broken']);
    server.streams(...events.slice(0, 4));
    const spoken = await ask();
    expect(textOf(spoken)).to.equal('Hel');
    expect(failureOf(spoken)).to.include({ code: 'model_stream_broken' });
  });
});

type Events = ((index: number) => object[]) & { calls?: boolean };

function response(...items: Events[]): object[] {
  const base = { id: 'resp_1', created_at: 1, model: 'm' };
  return [
    { type: 'response.created', response: base },
    ...items.flatMap((item, index) => item(index)),
    { type: 'response.completed', response: { ...base, usage: { input_tokens: 11, output_tokens: 9 } } },
  ];
}

function textItem(...deltas: string[]): Events {
  const item = { type: 'message', id: 'msg_1', role: 'assistant', content: [] };
  return (output_index) => [
    { type: 'response.output_item.added', output_index, item },
    ...deltas.map((delta) => ({
      type: 'response.output_text.delta',
      item_id: 'msg_1',
      output_index,
      content_index: 0,
      delta,
    })),
    { type: 'response.output_item.done', output_index, item },
  ];
}

function callItem(id: string, call_id: string, json: string): Events {
  const item = { type: 'function_call', id, call_id, name: 'get_weather' };
  return (output_index) => [
    { type: 'response.output_item.added', output_index, item: { ...item, arguments: '' } },
    { type: 'response.function_call_arguments.delta', item_id: id, output_index, delta: json },
    { type: 'response.output_item.done', output_index, item: { ...item, arguments: json, status: 'completed' } },
  ];
}
