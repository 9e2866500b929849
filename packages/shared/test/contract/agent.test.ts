import { expect } from 'chai';
import { type AgentConfigInput, CreateAgent, checkAgentConfig, withDefaults } from '../../src/contract/agent.js';
import { newId } from '../../src/contract/ids.js';
import { compile } from '../../src/contract/validate.js';

const create = compile(CreateAgent);
const inputSchema = { type: 'object', properties: { city: { type: 'string' } } };
const http = { type: 'http' as const, name: 'get_weather', inputSchema, url: 'https://example.com/' };
const config: AgentConfigInput = { instructions: 'You help.', model: { provider: 'demo', model: 'demo' } };

const valid = (changed: object) => create({ name: 'A', config: { ...config, ...changed } }).ok;
const checked = (changed: Partial<AgentConfigInput>) =>
  checkAgentConfig({ ...config, ...changed }).map((error) => error.pointer);

describe("an agent's configuration", () => {
  it('is complete after its defaults, and completing it again changes nothing', () => {
    const agentId = newId();
    const complete = withDefaults({
      ...config,
      tools: [
        http,
        { type: 'mcp', name: 'files', url: 'https://example.com/mcp' },
        { type: 'question', name: 'ask_user' },
        { type: 'delegate', name: 'researcher', agentId },
      ],
      limits: { maxSteps: 3 },
    });
    expect(complete).to.deep.equal({
      ...config,
      tools: [
        { ...http, description: '', method: 'POST', requireApproval: false, timeoutMs: 30_000 },
        { type: 'mcp', name: 'files', url: 'https://example.com/mcp', requireApproval: [] },
        { type: 'question', name: 'ask_user', description: '' },
        { type: 'delegate', name: 'researcher', description: '', agentId },
      ],
      limits: { maxSteps: 3, maxDurationMs: 600_000, maxToolOutputChars: 100_000 },
    });
    expect(valid(complete)).to.equal(true);
    expect(withDefaults(complete)).to.deep.equal(complete);
    expect(withDefaults(config).tools).to.deep.equal([]);
  });

  it('refuses unknown properties everywhere but inside an inputSchema', () => {
    expect(valid({ temperature: 1 })).to.equal(false);
    expect(valid({ model: { ...config.model, apiKey: 'x' } })).to.equal(false);
    expect(valid({ limits: { maxTokens: 1 } })).to.equal(false);
    expect(valid({ tools: [{ ...http, headers: {} }] })).to.equal(false);
    expect(valid({ tools: [{ ...http, inputSchema: { type: 'object', 'x-of-mine': 1 } }] })).to.equal(true);
  });

  it("takes for an MCP server's approvals all of its tools, none, or a list of names, and keeps which", () => {
    const mcp = { type: 'mcp' as const, name: 'files', url: 'https://example.com/mcp' };
    for (const requireApproval of [true, false, [], ['delete_file']]) {
      const tools = [{ ...mcp, requireApproval }];
      expect(valid({ tools })).to.equal(true);
      expect(withDefaults({ ...config, tools }).tools).to.deep.equal(tools);
    }
    for (const requireApproval of ['all', null, 1, {}, [''], ['x'.repeat(201)], [1]]) {
      expect(valid({ tools: [{ ...mcp, requireApproval }] }), JSON.stringify(requireApproval)).to.equal(false);
    }
  });

  it('keeps to its bounds', () => {
    const bounds: [string, number, number][] = [
      ['maxSteps', 1, 1_000],
      ['maxDurationMs', 1, 86_400_000],
      ['maxToolOutputChars', 1, 10_000_000],
    ];
    for (const [limit, low, high] of bounds) {
      const fits = (value: number) => valid({ limits: { [limit]: value } });
      expect([low - 1, low, low + 0.5, high, high + 1].map(fits), limit).to.deep.equal([
        false,
        true,
        false,
        true,
        false,
      ]);
    }
    expect([0, 1, 600_000, 600_001].map((timeoutMs) => valid({ tools: [{ ...http, timeoutMs }] }))).to.deep.equal([
      false,
      true,
      true,
      false,
    ]);
    expect([200_000, 200_001].map((length) => valid({ instructions: 'x'.repeat(length) }))).to.deep.equal([
      true,
      false,
    ]);
  });

  it('takes tool names that models take', () => {
    for (const name of ['', '1a', '_a', 'a b', 'é', 'a.b', `a${'b'.repeat(64)}`]) {
      expect(valid({ tools: [{ ...http, name }] }), name).to.equal(false);
    }
    expect(valid({ tools: [{ ...http, name: `a${'-'.repeat(63)}` }] })).to.equal(true);
  });

  it('refuses a second tool of the same name, whatever its type', () => {
    expect(
      checked({ tools: [http, { type: 'question', name: 'ask' }, { type: 'question', name: http.name }] }),
    ).to.deep.equal(['/tools/2/name']);
  });

  it('wants http or https without user and password', () => {
    for (const url of [
      'x',
      '/x',
      'ftp://a/',
      'file:///etc/passwd',
      'http://u:p@a/',
      'http://u@a/',
      'http://:p@a/',
      'http://',
    ]) {
      expect(checked({ tools: [{ ...http, url }] }), url).to.deep.equal(['/tools/0/url']);
      expect(checked({ tools: [{ type: 'mcp', name: 'm', url }] }), url).to.deep.equal(['/tools/0/url']);
      expect(checked({ model: { ...config.model, baseUrl: url } }), url).to.deep.equal(['/model/baseUrl']);
    }
    expect(checked({ tools: [http] })).to.deep.equal([]);
  });

  it('wants a baseUrl for openai-compatible alone', () => {
    expect(checked({ model: { provider: 'openai-compatible', model: 'm' } })).to.deep.equal(['/model/baseUrl']);
    expect(
      checked({ model: { provider: 'openai-compatible', model: 'm', baseUrl: 'http://127.0.0.1:1/v1' } }),
    ).to.deep.equal([]);
    for (const provider of ['openai', 'anthropic', 'google', 'demo'] as const) {
      expect(checked({ model: { provider, model: 'm' } })).to.deep.equal([]);
    }
  });

  it('wants an inputSchema that is an object schema and compiles on its own', () => {
    const at = (schema: Record<string, unknown>) => checked({ tools: [{ ...http, inputSchema: schema }] });
    expect(at({})).to.deep.equal(['/tools/0/inputSchema/type']);
    expect(at({ type: 'string' })).to.deep.equal(['/tools/0/inputSchema/type']);
    const broken = [
      { properties: 5 },
      { properties: { a: { type: 'strin' } } },
      { properties: { a: { pattern: '(' } } },
      { properties: { a: { $ref: 'https://example.com/other.json' } } },
      { description: 'x'.repeat(100_001) },
    ];
    for (const schema of broken) expect(at({ type: 'object', ...schema })).to.deep.equal(['/tools/0/inputSchema']);
    const draft7 = { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object', properties: {} };
    expect(at(draft7)).to.deep.equal([]);
    expect(at({ type: 'object', properties: { a: { format: 'of-mine' }, b: { $ref: '#' } } })).to.deep.equal([]);
  });

  it('lets two agents use the same $id', () => {
    const inputSchema = { $id: 'https://example.com/s', type: 'object' };
    expect(
      checked({
        tools: [
          { ...http, inputSchema },
          { ...http, name: 'b', inputSchema },
        ],
      }),
    ).to.deep.equal([]);
    expect(checked({ tools: [{ ...http, inputSchema }] })).to.deep.equal([]);
  });
});
