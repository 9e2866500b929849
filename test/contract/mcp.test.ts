import { expect } from 'chai';
import { ReferenceServer } from '../../packages/worker/test/runtime/mcp-reference.js';
import type { Chat } from '../support/chat.js';
import { chainOf } from '../support/delegation.js';
import { unique } from '../support/environment.js';
import { textOf } from '../support/model-rules.js';
import { callTool, reply, say } from '../support/model-script.js';
import { APPROVE, DENY, suspend } from '../support/resume.js';
import { useCluster } from '../support/suite.js';

/** The tools as a request to the model offers them. */
type Offered = { function: { name: string; description: string } }[];

describe('MCP tools (section 3), with the reference server', () => {
  const cluster = useCluster();
  const server = new ReferenceServer();
  let chat: Chat;
  before(async () => {
    await server.start();
    chat = await cluster.newChat({ tools: [entry({ requireApproval: ['echo'] })] });
  });
  after(() => server.kill());
  const entry = (fields: Record<string, unknown> = {}) => ({ type: 'mcp', name: 'all', url: server.url, ...fields });

  async function told(marker: string, count = 2): Promise<string[]> {
    const messages = (await cluster.model.request(marker, count)).body.messages ?? [];
    return messages.filter((message) => message.role === 'tool').map((message) => textOf(message.content));
  }

  it('are offered as <server>__<tool>, called, and their result is told', async () => {
    const marker = unique('sum');
    cluster.model.on(marker, callTool('all__get-sum', { a: 2, b: 40 }), say('42.'));
    const turn = await chat.turn(marker);
    expect(turn).to.include({ status: 'success', text: '42.' });
    const offered = (await cluster.model.request(marker)).body.tools as Offered;
    expect(offered.map((tool) => tool.function.name)).to.include.members(['all__get-sum', 'all__echo']);
    for (const tool of offered) expect(tool.function.description).not.to.equal('');
    expect((await told(marker))[0]).to.contain('42');
    expect(turn.of('tool-call')[0]).to.deep.include({ toolName: 'all__get-sum', input: { a: 2, b: 40 } });
    const { messages } = await chat.transcript(turn.sessionId);
    expect(messages[1]?.content[0]).to.include({ toolName: 'all__get-sum', state: 'done' });
  });

  it('wait for an approval where the server’s own name is listed, and only there', async () => {
    const marker = unique('listed');
    cluster.model.on(
      marker,
      reply(callTool('all__echo', { message: 'hello 😀' }), callTool('all__get-sum', { a: 1, b: 1 })),
      say('ok'),
    );
    const run = await suspend(chat, marker);
    expect(run.calls.map((call) => [call.toolName, call.kind])).to.deep.equal([['all__echo', 'approval']]);
    expect(run.turn.of('tool-result').map((event) => event.toolName)).to.deep.equal(['all__get-sum']);
    const resumed = await run.resume(run.id(), APPROVE, { main: 1 });
    expect(resumed.status).to.equal('success');
    expect((await told(marker))[0]).to.equal('Echo: hello 😀');
  });

  it('wait all of them where `requireApproval` is true; a denied one is not called', async () => {
    const careful = await cluster.newChat({ tools: [entry({ requireApproval: true })] });
    const marker = unique('all');
    cluster.model.on(marker, callTool('all__get-sum', { a: 1, b: 2 }), say('ok'));
    const run = await suspend(careful, marker);
    await run.resume(run.id(), { ...DENY, reason: 'not this' });
    expect((await told(marker))[0]).to.contain('not this');
  });

  it('have names of their own: another tool, or another server, may have the same', async () => {
    const twice = await cluster.newChat({
      tools: [cluster.httpTool('all__echo'), entry(), entry({ name: 'second' })],
    });
    const marker = unique('clash');
    await twice.turn(marker);
    const names = ((await cluster.model.request(marker)).body.tools as Offered).map((tool) => tool.function.name);
    expect(new Set(names).size).to.equal(names.length);
    expect(names).to.include.members(['all__echo', 'second__echo', 'second__get-sum']);
    expect(names.filter((name) => name.startsWith('all__echo'))).to.have.length(2);
  });

  it('an error of the tool is told, and the turn goes on', async () => {
    const marker = unique('bad-input');
    cluster.model.on(marker, callTool('all__get-sum', { a: 'x' }), say('ok'));
    const turn = await chat.turn(marker);
    expect(turn.status).to.equal('success');
    expect(turn.of('tool-result')[0]).to.include({ isError: true });
  });

  it('a delegate has those of its own agent', async () => {
    const own = await chainOf(cluster, {}, { tools: [entry({ requireApproval: ['echo'] })] });
    const [marker, task] = [unique('parent'), unique('task')];
    cluster.model.on(marker, callTool('deeper', { task }), say('ok'));
    cluster.model.on(task, callTool('all__echo', { message: 'inside' }), say('said'));
    const run = await suspend(own, marker);
    expect((await run.resume(run.id(), APPROVE)).status).to.equal('success');
    expect((await told(task))[0]).to.equal('Echo: inside');
    expect(
      ((await cluster.model.request(marker)).body.tools as Offered).map((tool) => tool.function.name),
    ).to.deep.equal(['deeper']);
  });

  it('a server that is down: the model is told, and the turn goes on without its tools', async () => {
    const gone = await cluster.newChat({ tools: [entry({ name: 'gone', url: 'http://127.0.0.1:1/mcp' }), entry()] });
    const marker = unique('down');
    const turn = await gone.turn(marker);
    expect(turn.status).to.equal('success');
    const { body } = await cluster.model.request(marker);
    const system = textOf(body.messages?.[0]?.content);
    expect(system).to.contain('gone');
    expect(system, 'an address').not.to.contain('127.0.0.1');
    const names = (body.tools as Offered).map((tool) => tool.function.name);
    expect(names.some((name) => name.startsWith('gone__'))).to.equal(false);
    expect(names).to.include('all__echo');
  });

  it('a server that went down while the run was suspended: the approved call is an error that the model is told', async () => {
    const marker = unique('went-down');
    cluster.model.on(marker, callTool('all__echo', { message: 'x' }), say('Then not.'));
    const run = await suspend(chat, marker);
    await server.kill();
    const resumed = await run.resume(run.id(), APPROVE);
    expect(resumed).to.include({ status: 'success', text: 'Then not.' });
    expect(resumed.of('tool-result')[0]).to.include({ isError: true });
    expect((await chat.transcript(run.sessionId)).messages[1]?.content[0]).to.include({ state: 'error' });
    await server.start();
  });
});
