import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { textOf } from '../support/model-rules.js';
import { callTool, reply, say } from '../support/model-script.js';
import { expectProblem } from '../support/problem.js';
import { useCluster } from '../support/suite.js';
import { answer, big, hangUp, silence } from '../support/tool-server.js';

describe('HTTP tools (section 3)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat({
      tools: [
        cluster.httpTool('save', {
          description: 'Saves a thing',
          inputSchema: { type: 'object', properties: { x: {} } },
        }),
        cluster.httpTool('find', { method: 'GET' }),
        cluster.httpTool('hasty', { timeoutMs: 200 }),
        cluster.httpTool('missing', { url: 'http://127.0.0.1:1/none' }),
      ],
    });
  });

  /** A turn that calls one tool with this input and then says 'ok'. */
  async function callOnce(name: string, input: unknown, id?: string) {
    const marker = unique(name);
    cluster.model.on(marker, callTool(name, input, id), say('ok'));
    const turn = await chat.turn(marker);
    expect(turn).to.include({ text: 'ok', status: 'success' });
    const told = (await cluster.model.request(marker, 2)).body.messages?.at(-1);
    return { turn, result: turn.of('tool-result')[0], told: textOf(told?.content) };
  }

  it('offers the tools to the model with name, description and schema', async () => {
    const marker = unique('offer');
    await chat.turn(marker);
    const tools = (await cluster.model.request(marker)).body.tools as { function: Record<string, unknown> }[];
    expect(tools.map((tool) => tool.function.name)).to.deep.equal(['save', 'find', 'hasty', 'missing']);
    expect(tools[0]?.function).to.deep.include({ description: 'Saves a thing' });
    expect(tools[0]?.function.parameters).to.deep.include({ type: 'object', properties: { x: {} } });
  });

  it('POST: the arguments are the JSON body; headers name the execution and the call', async () => {
    cluster.tools.on('save', answer({ saved: 1 }));
    const { turn, result, told } = await callOnce('save', { a: 1, nested: { b: ['ü', null] } });
    const call = cluster.tools.callsOf('save').at(-1);
    expect(call?.method).to.equal('POST');
    expect(call?.body).to.deep.equal({ a: 1, nested: { b: ['ü', null] } });
    const toolCallId = String(turn.of('tool-call')[0]?.toolCallId);
    expect(call?.headers).to.include({
      'x-turnkeep-execution-id': turn.executionId,
      'x-turnkeep-tool-call-id': toolCallId,
      'idempotency-key': toolCallId,
    });
    expect(call?.headers['content-type']).to.match(/^application\/json/);
    expect(result).to.deep.include({ output: { saved: 1 }, isError: false });
    expect(JSON.parse(told)).to.deep.equal({ saved: 1 });
  });

  it('GET: the arguments are the query', async () => {
    cluster.tools.on('find', answer(['found']));
    await callOnce('find', { q: 'a&b=ü 😀', limit: 3 });
    const call = cluster.tools.callsOf('find').at(-1);
    expect(call?.method).to.equal('GET');
    expect(call?.body).to.equal(undefined);
    expect(Object.fromEntries(call?.query ?? [])).to.deep.equal({ q: 'a&b=ü 😀', limit: '3' });
  });

  it('takes an answer that is text for a string', async () => {
    cluster.tools.on('save', (_, response) => void response.setHeader('content-type', 'text/plain').end('just words'));
    expect((await callOnce('save', {})).result).to.deep.include({ output: 'just words', isError: false });
  });

  it('makes its own call ids, unique in the world; a provider’s id stays with the provider', async () => {
    cluster.tools.on('save', answer('ok'));
    const [one, two] = [await callOnce('save', {}, 'call_same'), await callOnce('save', {}, 'call_same')];
    const [first, second] = [one, two].map(({ turn }) => turn.of('tool-call')[0]?.toolCallId);
    expect(first).not.to.equal(second);
    const seen = [one.turn.events, await chat.transcript(one.turn.sessionId)];
    expect(JSON.stringify(seen)).not.to.contain('call_same');
    expect(cluster.tools.callsOf('save').map((call) => call.headers['idempotency-key'])).not.to.include('call_same');
  });

  it('runs every call of a batch and gives the model each result', async () => {
    const marker = unique('batch');
    cluster.tools.on('save', answer('saved'));
    cluster.tools.on('find', answer('found'));
    cluster.model.on(
      marker,
      reply(callTool('save', { n: 1 }), callTool('find', { n: 2 }), callTool('save', {})),
      say('ok'),
    );
    const turn = await chat.turn(marker);
    expect(
      turn
        .of('tool-result')
        .map((event) => event.output)
        .sort(),
    ).to.deep.equal(['found', 'saved', 'saved']);
    expect(turn.status).to.equal('success');
    const { messages } = await chat.transcript(turn.sessionId);
    const calls = messages[1]?.content.filter((part) => part.type === 'tool-call');
    expect(calls?.map((part) => [part.toolName, part.state])).to.deep.equal([
      ['save', 'done'],
      ['find', 'done'],
      ['save', 'done'],
    ]);
  });

  describe('a tool that fails is an error that the model is told, and the turn goes on', () => {
    it('4xx and 5xx', async () => {
      for (const status of [400, 404, 500]) {
        cluster.tools.on('save', answer({ why: 'because' }, status));
        const { turn, result, told } = await callOnce('save', {});
        expect(result).to.include({ isError: true });
        expect(told).to.contain(String(status));
        const { messages } = await chat.transcript(turn.sessionId);
        expect(messages[1]?.content[0]).to.include({ state: 'error' });
      }
      expect(cluster.tools.callsOf('save').slice(-3), 'one call each: nothing is tried twice').to.have.length(3);
    });

    it('a connection that hangs up, or is refused', async () => {
      cluster.tools.on('save', hangUp());
      const count = cluster.tools.callsOf('save').length;
      expect((await callOnce('save', {})).result).to.include({ isError: true });
      expect(cluster.tools.callsOf('save').length, 'never called twice').to.equal(count + 1);
      const { result, told } = await callOnce('missing', {});
      expect(result).to.include({ isError: true });
      expect(told).not.to.equal('');
    });

    it('no answer within timeoutMs: its request is aborted', async () => {
      cluster.tools.on('hasty', silence());
      const { result } = await callOnce('hasty', {});
      expect(result).to.include({ isError: true });
      expect(await cluster.tools.callsOf('hasty').at(-1)?.over).to.equal('aborted');
    });
  });

  describe('large inputs and outputs', () => {
    it('an answer of 20 MB is cut, and neither the turn nor the process dies of it', async () => {
      cluster.tools.on('save', big(20 * 1024 * 1024));
      const { turn, told } = await callOnce('save', {});
      expect(told.length).to.be.at.most(101_000);
      expect(turn.status).to.equal('success');
      for (const worker of cluster.workers) expect(worker.alive).to.equal(true);
    });

    it('what goes past 64 KiB is the beginning of its JSON, truncated, and the whole stands at its own route', async () => {
      const output = { list: Array.from({ length: 9_000 }, (_, at) => `item ${at} é😀`) };
      const input = { text: 'ab😀'.repeat(20_000) };
      cluster.tools.on('save', answer(output));
      const { turn, result, told } = await callOnce('save', input);
      expect(result).to.include({ truncated: true, isError: false });
      expect(JSON.stringify(output).startsWith(String(result?.output).slice(0, 1_000))).to.equal(true);
      const call = turn.of('tool-call')[0];
      expect(call).to.include({ truncated: true });
      const { messages } = await chat.transcript(turn.sessionId);
      expect(messages[1]?.content[0]).to.include({ truncated: true, state: 'done' });
      const path = `/${turn.sessionId}/executions/${turn.executionId}/tool-calls/${call?.toolCallId}`;
      const whole = (await chat.http(1).expect(200, chat.path(path))).json();
      expect(whole).to.include({ toolCallId: call?.toolCallId, toolName: 'save' });
      expect(whole.input).to.deep.equal(input);
      expect(whole.output).to.deep.equal(output);
      expect([...told].length, 'what the model sees of it').to.be.at.most(100_500);
      expect((await cluster.model.request(String(messages[0]?.content[0]?.text), 1)).state()).to.equal('answered');
    });

    it('404 for the whole of a call that never was', async () => {
      const turn = await chat.turn('x');
      const path = `/${turn.sessionId}/executions/${turn.executionId}/tool-calls/none`;
      expectProblem(await chat.http().get(chat.path(path)), 404, 'not_found');
    });
  });
});
