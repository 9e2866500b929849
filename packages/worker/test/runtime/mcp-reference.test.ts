import { expect } from 'chai';
import { McpClients, type McpToolOffer } from '../../src/runtime/mcp.js';
import { ReferenceServer } from './mcp-reference.js';
import { useEgress } from './speak.js';

describe('the reference server of MCP', () => {
  const egress = useEgress();
  const server = new ReferenceServer();
  const signal = new AbortController().signal;
  let clients: McpClients;
  let tools: McpToolOffer[];
  before(async () => {
    await server.start();
    clients = new McpClients({ fetch: egress.fetch });
    const entry = { type: 'mcp' as const, name: 'all', url: server.url, requireApproval: ['echo'] };
    const listing = await clients.list([entry], signal);
    expect(listing.notes).to.deep.equal([]);
    tools = listing.tools;
  });
  after(async () => {
    await clients.close();
    await server.kill();
  });
  const call = (name: string, input = {}, abortSignal = signal) => {
    const offer = tools.find(({ serverToolName }) => serverToolName === name);
    return clients.call(offer!, input, { executionId: 'e', toolCallId: `call_${name}`, abortSignal });
  };

  it('lists its tools', () => {
    expect(tools.length).to.be.greaterThan(8);
    expect(tools.find(({ name }) => name === 'all__echo')).to.deep.include({ requireApproval: true });
    expect(tools.find(({ name }) => name === 'all__get-sum')).to.deep.include({ requireApproval: false });
    for (const { description, inputSchema } of tools) {
      expect(description).not.to.equal('');
      expect(inputSchema).to.include({ type: 'object' });
    }
  });

  it('answers text, structured content, an image, and an error', async () => {
    expect(await call('echo', { message: 'Grüße 😀' })).to.deep.equal({ output: 'Echo: Grüße 😀', isError: false });
    const weather = await call('get-structured-content', { location: 'Chicago' });
    expect(weather.output).to.have.all.keys('temperature', 'conditions', 'humidity');
    expect((await call('get-tiny-image')).output).to.match(/\[A file of type image\/png with \d+ bytes; not shown\.\]/);
    expect((await call('get-sum', { a: 'x' })).isError).to.equal(true);
  });

  it('reports progress and then the result', async () => {
    const { output } = await call('trigger-long-running-operation', { duration: 0.2, steps: 2 });
    expect(output).to.contain('completed');
  });

  it('is left at once by a Stop, and answers the next call', async () => {
    const controller = new AbortController();
    const running = call('trigger-long-running-operation', { duration: 60 }, controller.signal);
    expect((await call('echo', { message: 'meanwhile' })).isError).to.equal(false);
    controller.abort(new DOMException('stopped', 'AbortError'));
    expect(await running.catch((error: unknown) => error)).to.equal(controller.signal.reason);
    expect((await call('echo', { message: 'after' })).output).to.equal('Echo: after');
  });

  it('is used again after it was killed and started', async () => {
    await server.kill();
    const down = await call('echo', { message: 'lost' });
    expect(down.isError).to.equal(true);
    expect(down.output).to.contain('did not run');
    await server.start();
    expect((await call('echo', { message: 'back' })).output).to.equal('Echo: back');
    await server.kill();
    await server.start();
    expect((await call('echo', { message: 'lost' })).output).to.contain('it can be called again');
    expect((await call('echo', { message: 'again' })).output).to.equal('Echo: again');
  });
});
