import { expect } from 'chai';
import { createEgress } from '../../src/runtime/egress.js';
import { json, type Message, never, refuse, result, stream, tool, useMcp } from './mcp-wire-server.js';
import { useEgress } from './speak.js';
import { freePort } from './wire-server.js';

const nested = (depth: number) => JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`) as object;

describe("the list of an MCP server's tools", () => {
  const { wire, server, clients, entry } = useMcp(useEgress());
  const note = async (options = {}, more = {}) => {
    const { tools, notes } = await clients(options).list([entry(more)], never());
    expect(tools).to.deep.equal([]);
    expect(notes).to.have.length(1);
    expect(notes[0]).to.match(/^The tools of the server wire are not available now: .*[^.]\.$/);
    return notes[0];
  };

  it('is offered under the names of the entry and the tool', async () => {
    const inputSchema = { type: 'object', properties: { path: { type: 'string' } } };
    server.lists({ name: 'read', description: 'Reads.', inputSchema });
    const files = entry({ name: 'files' });
    const own = clients();
    expect(await own.list([files], never())).to.deep.equal({
      tools: [
        {
          name: 'files__read',
          server: files,
          serverToolName: 'read',
          description: 'Reads.',
          inputSchema,
          requireApproval: false,
        },
      ],
      notes: [],
    });
    await own.close();
    expect(server.ended, 'its session is ended').to.have.length(1);
  });

  it('asks nobody where an agent has no servers', async () => {
    expect(await clients().list([], never())).to.deep.equal({ tools: [], notes: [] });
  });

  it('waits for an approval for the tools that the entry names, all, or none', async () => {
    server.lists(tool('read'), tool('delete'));
    const approvals = async (requireApproval: boolean | string[]) => {
      const { tools } = await clients().list([entry({ requireApproval })], never());
      return tools.map((offer) => offer.requireApproval);
    };
    expect(await approvals(['delete', 'wire__read'])).to.deep.equal([false, true]);
    expect(await approvals(true)).to.deep.equal([true, true]);
    expect(await approvals(false)).to.deep.equal([false, false]);
  });

  it('is asked for once by turns at the same time, and again after its time', async () => {
    let now = 1_000;
    const both = clients({ now: () => now, cacheMs: 600 });
    const asked = () => server.of('tools/list').length;
    await Promise.all([both.list([entry()], never()), both.list([entry({ name: 'other' })], never())]);
    expect(asked()).to.equal(1);
    now += 599;
    await both.list([entry()], never());
    expect(asked()).to.equal(1);
    now += 1;
    await both.list([entry()], never());
    expect(asked()).to.equal(2);
  });

  it('that could not be had is asked for again sooner', async () => {
    let now = 1_000;
    const own = clients({ now: () => now, cacheMs: 600 });
    server.handlers['tools/list'] = (_, response) => void response.writeHead(500).end();
    expect((await own.list([entry()], never())).notes).to.have.length(1);
    server.handlers = {};
    now += 99;
    expect((await own.list([entry()], never())).notes).to.have.length(1);
    now += 1;
    expect((await own.list([entry()], never())).tools).to.have.length(1);
  });

  it('is a note where the server is down, and other servers are offered all the same', async () => {
    const down = entry({ name: 'down', url: `http://127.0.0.1:${await freePort()}/mcp` });
    const { tools, notes } = await clients().list([down, entry()], never());
    expect(tools.map(({ name }) => name)).to.deep.equal(['wire__act']);
    expect(notes).to.deep.equal([
      'The tools of the server down are not available now: it refuses connections and may not be running.',
    ]);
  });

  it('is a note where the server is slow, and lets go of it', async () => {
    for (const method of ['server/discover', 'initialize', 'tools/list']) {
      server.reset();
      server.handlers[method] = () => {};
      expect(await note({ listTimeoutMs: 150 })).to.contain('did not answer in time');
      expect(await server.of(method)[0]?.request.over, method).to.equal(false);
    }
  });

  it('is a note where the connection is cut', async () => {
    server.handlers['tools/list'] = (_, response) => void response.destroy();
    expect(await note()).to.contain('the connection broke');
    server.handlers['tools/list'] = (_, response) => {
      stream(response);
      response.end();
    };
    expect(await note()).to.contain('ended before it had answered');
    server.handlers['tools/list'] = (_, response) => {
      stream(response);
      response.write('data: {"jsonrpc":"2.0","id":');
      setImmediate(() => response.destroy());
    };
    expect(await note()).to.contain('broke');
  });

  const wrong: [string, (message: Message, response: Parameters<typeof json>[0]) => void, string][] = [
    ['answers HTTP 500', (_, response) => void response.writeHead(500).end('stack at /srv/app.js'), 'HTTP status 500'],
    ['wants a sign-in', (_, response) => void response.writeHead(401).end(), 'wants a sign-in'],
    ['is a web site', (_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'), 'MCP'],
    ['answers no JSON', (_, response) => json(response, '{"tools":'), 'as an MCP server does'],
    ['answers other JSON', (_, response) => json(response, { tools: [] }), 'as an MCP server does'],
    ['lists no tools', (message, response) => result(response, message, { tools: 'none' }), 'as an MCP server does'],
    [
      'refuses',
      (message, response) => refuse(response, message, -32603, 'Out of \ud83d order'),
      'it said: Out of \uFFFD',
    ],
  ];
  for (const [what, answer, why] of wrong) {
    it(`is a note where the server ${what}`, async () => {
      server.handlers['tools/list'] = answer;
      const words = await note();
      expect(words).to.contain(why).and.not.contain('/srv').and.not.contain('127.0.0.1');
    });
  }

  it('is a note where the server speaks a protocol of its own', async () => {
    server.handlers.initialize = (message, response) =>
      result(response, message, {
        protocolVersion: '1999-01-01',
        capabilities: {},
        serverInfo: { name: '', version: '' },
      });
    expect(await note()).to.contain('does not answer as an MCP server does');
  });

  it('is empty where the server has other things than tools', async () => {
    server.handlers.initialize = (message, response) =>
      result(response, message, {
        protocolVersion: '2025-06-18',
        capabilities: {},
        serverInfo: { name: '', version: '' },
      });
    expect(await clients().list([entry()], never())).to.deep.equal({ tools: [], notes: [] });
    expect(server.of('tools/list')).to.deep.equal([]);
  });

  it('is a note where the answer is huge', async () => {
    server.lists(tool('act', { description: 'x'.repeat(9 * 1024 * 1024) }));
    expect(await note()).to.contain('too large');
  });

  it('is a note in a private network, which is not asked', async () => {
    const closed = createEgress({ allowPrivateNetwork: false });
    expect(await note({ fetch: closed.fetch }))
      .to.contain('was not asked')
      .and.contain('ALLOW_PRIVATE_NETWORK');
    await closed.close();
    expect(wire.requests).to.have.length(0);
  });

  it('ends after ten pages of a server that pages for ever', async () => {
    server.handlers['tools/list'] = (message, response) => {
      const page = Number(message.params?.cursor ?? 0);
      result(response, message, { tools: [tool(`t${page}`)], nextCursor: String(page + 1) });
    };
    const { tools, notes } = await clients().list([entry()], never());
    expect(tools.map(({ serverToolName }) => serverToolName)).to.deep.equal([...Array(10).keys()].map((n) => `t${n}`));
    expect(notes).to.deep.equal(['The server wire has more tools than can be offered: only the first 10 are offered.']);
    expect(server.of('tools/list')).to.have.length(10);
  });

  it('ends where a page leads to itself', async () => {
    server.handlers['tools/list'] = (message, response) =>
      result(response, message, { tools: [tool('act')], nextCursor: 'same' });
    expect((await clients().list([entry()], never())).tools).to.have.length(1);
    expect(server.of('tools/list')).to.have.length(2);
  });

  it('ends after 200 tools, or a million characters', async () => {
    server.lists(...[...Array(2_000).keys()].map((n) => tool(`t${n}`)));
    const many = await clients().list([entry()], never());
    expect(many.tools).to.have.length(200);
    expect(many.notes[0]).to.contain('only the first 200 are offered');
    server.lists(...[...Array(150).keys()].map((n) => tool(`t${n}`, { description: 'x'.repeat(9_900) })));
    const long = await clients().list([entry()], never());
    expect(long.tools.length).to.be.within(99, 101);
    expect(long.notes).to.have.length(1);
  });

  it('is bounded and made storable, tool by tool', async () => {
    server.lists(
      tool('long', { description: '😀'.repeat(10_001) }),
      tool('odd', { description: 'a\0\ud83d', inputSchema: { type: 'object', title: '\udc00' } }),
      tool('array', { inputSchema: { type: 'array' } }),
      tool('none', { inputSchema: {} }),
      tool('deep', { inputSchema: { type: 'object', properties: nested(600) } }),
      tool('large', { inputSchema: { type: 'object', title: 'x'.repeat(100_001) } }),
      tool(''),
      tool('a\0b'),
      tool('n'.repeat(201)),
      tool('long', { description: 'again' }),
    );
    const { tools } = await clients().list([entry()], never());
    const by = Object.fromEntries(tools.map((offer) => [offer.serverToolName, offer]));
    expect(Object.keys(by)).to.deep.equal(['long', 'odd', 'array', 'none', 'deep', 'large']);
    expect(by.long?.description).to.equal('😀'.repeat(10_000));
    expect(by.odd).to.deep.include({
      description: 'a\uFFFD\uFFFD',
      inputSchema: { type: 'object', title: '\uFFFD' },
    });
    for (const name of ['array', 'none', 'deep', 'large'])
      expect(by[name]?.inputSchema).to.deep.equal({ type: 'object' });
  });

  it('gives every tool a name that all providers take, none twice, and the same each time', async () => {
    const long = 'l'.repeat(64);
    server.lists(
      ...['act', 'get.it', 'get/it', 'get_it', '漢', '字', long, `${long}2`, 'b__c'].map((name) => tool(name)),
    );
    const entries = [entry({ name: 'a' }), entry({ name: 'a__b' }), entry({ name: 's'.repeat(64) })];
    const names = async (taken: string[]) =>
      (await clients().list(entries, never(), taken)).tools.map(({ name }) => name);
    const given = await names(['a__act']);
    expect(given).to.have.length(27);
    expect(new Set([...given, 'a__act']).size).to.equal(28);
    for (const name of given) expect(name).to.match(/^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/);
    expect(given[0]).to.match(/^a__act_[0-9a-f]{8}$/);
    expect(given).to.include('a__get_it').and.include('a__b__c');
    expect(await names(['a__act'])).to.deep.equal(given);
    expect((await names([])).slice(1), 'what one name does to the others').to.deep.equal(given.slice(1));
  });

  it('is left at once by a turn that is stopped, while another turn gets it', async () => {
    let release = () => {};
    const asked = new Promise<void>((resolve) => {
      server.handlers['tools/list'] = (message, response) => {
        release = () => result(response, message, { tools: [tool('act')] });
        resolve();
      };
    });
    const both = clients();
    const controller = new AbortController();
    const reason = new DOMException('stopped by the user', 'AbortError');
    const stopped = both.list([entry()], controller.signal).catch((error: unknown) => error);
    const other = both.list([entry()], never());
    await asked;
    controller.abort(reason);
    expect(await stopped).to.equal(reason);
    release();
    expect((await other).tools).to.have.length(1);
    expect(await both.list([entry()], AbortSignal.abort(reason)).catch((error: unknown) => error)).to.equal(reason);
  });
});
