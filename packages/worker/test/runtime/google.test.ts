import { expect } from 'chai';
import { toolMessage } from '../../src/runtime/tool-output.js';
import { API_KEY, callsOf, failureOf, modelAt, outcomeOf, speak, textOf, useEgress, user } from './speak.js';
import { useWireServer } from './wire-server.js';

describe('a step with Google', () => {
  const egress = useEgress();
  const server = useWireServer();
  const ask = (messages = [user('hi')]) =>
    speak({ model: modelAt(egress, `${server.url}/v1beta`, 'google'), messages });

  it('streams text', async () => {
    server.streams(chunk([{ text: 'Hel' }]), chunk([{ text: 'lo' }], 'STOP'));
    const spoken = await ask();
    expect(textOf(spoken)).to.equal('Hello');
    expect(outcomeOf(spoken)).to.deep.include({ finishReason: 'stop', usage: { inputTokens: 11, outputTokens: 9 } });
    expect(server.last.url).to.equal('/v1beta/models/test-model:streamGenerateContent?alt=sse');
    expect(server.last.headers).to.include({ 'x-goog-api-key': API_KEY });
  });

  it('calls a tool, and gives the thought’s signature back with the result', async () => {
    const functionCall = { name: 'get_weather', args: { city: 'Rome' } };
    server.streams(chunk([{ functionCall, thoughtSignature: 'c2lnbmVk' }], 'STOP'));
    const spoken = await ask();
    expect(callsOf(spoken)[0]?.input).to.deep.equal({ city: 'Rome' });
    const { messages, providerCallIds } = outcomeOf(spoken);
    const results = callsOf(spoken).map(({ callId, toolName }) => ({
      callId,
      toolName,
      output: 'sun',
      isError: false,
    }));
    server.streams(chunk([{ text: 'Sunny' }], 'STOP'));
    await ask(JSON.parse(JSON.stringify([user('hi'), ...messages, toolMessage(results, providerCallIds, 100)])));
    const [, call, result] = server.lastJson.contents;
    expect(call.parts[0]).to.deep.include({ thoughtSignature: 'c2lnbmVk' });
    expect(call.parts[0].functionCall).to.deep.include(functionCall);
    expect(result.parts[0].functionResponse).to.deep.include({ name: 'get_weather' });
  });

  it('says why a request was refused', async () => {
    server.answer = (_, response) => {
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify({ error: { code: 400, message: 'Invalid argument: tools', status: 'INVALID_ARGUMENT' } }),
      );
    };
    expect(failureOf(await ask()))
      .to.include({ code: 'model_refused' })
      .and.property('message')
      .contain('Invalid argument: tools');
  });

  it('a call that the model broke off, and a stream without its end, fail', async () => {
    server.streams(chunk([], 'MALFORMED_FUNCTION_CALL'));
    expect(failureOf(await ask())).to.include({ code: 'model_stream_broken' });
    server.streams(chunk([{ text: 'Hel' }]));
    const spoken = await ask();
    expect(textOf(spoken)).to.equal('Hel');
    expect(failureOf(spoken)).to.include({ code: 'model_stream_broken' });
  });
});

function chunk(parts: object[], finishReason?: string): object {
  return {
    candidates: [{ content: { role: 'model', parts }, index: 0, ...(finishReason ? { finishReason } : {}) }],
    usageMetadata: { promptTokenCount: 11, candidatesTokenCount: 9, totalTokenCount: 20 },
  };
}
