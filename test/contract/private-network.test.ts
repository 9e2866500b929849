import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { Chat } from '../support/chat.js';
import type { TestUser } from '../support/cluster.js';
import { unique } from '../support/environment.js';
import { callTool, say } from '../support/model-script.js';
import { useCluster } from '../support/suite.js';

describe('without ALLOW_PRIVATE_NETWORK (section 1)', () => {
  const cluster = useCluster({ mains: 1, workers: 1, env: { ALLOW_PRIVATE_NETWORK: 'false' } });
  let user: TestUser;
  let projectId: string;
  before(async () => {
    user = await cluster.newUser();
    projectId = await cluster.newProject(user);
  });

  const port = () => new URL(cluster.model.baseUrl).port;
  const addresses: Record<string, () => string> = {
    'a loopback address': () => `http://127.0.0.1:${port()}/v1`,
    'a name that resolves to it': () => `http://localhost:${port()}/v1`,
    'the address as one number': () => `http://2130706433:${port()}/v1`,
    'the address in octal': () => `http://0177.0.0.1:${port()}/v1`,
    'IPv6 loopback': () => `http://[::1]:${port()}/v1`,
    'IPv4 inside of IPv6': () => `http://[::ffff:127.0.0.1]:${port()}/v1`,
    'the unspecified address': () => `http://0.0.0.0:${port()}/v1`,
    'the metadata service': () => 'http://169.254.169.254/v1',
    'a private network': () => 'http://10.0.0.1/v1',
  };
  for (const [what, baseUrl] of Object.entries(addresses)) {
    it(`a model at ${what} is never reached`, async () => {
      const model = { provider: 'openai-compatible', model: 'scripted', baseUrl: baseUrl() };
      const body = { name: unique('agent'), config: cluster.config({ model }) };
      const created = await user.on().post(`/projects/${projectId}/agents/v2`, body);
      expect(created.status, created.text).to.be.oneOf([201, 400]);
      if (created.status === 201) {
        const turn = await new Chat(user, projectId, String(created.json().id)).turn('Anybody there?');
        expect(turn.status).to.equal('error');
        expect(turn.error?.code).to.be.oneOf(['model_refused', 'model_unavailable']);
      }
      expect(cluster.model.requests).to.have.length(0);
    });
  }

  it('the same addresses are no tools either', async () => {
    // The turn is run by the demo model's rules only where it calls the tool; the refusal at save time is enough, too.
    const tools = [cluster.httpTool('look'), { type: 'mcp', name: 'far', url: cluster.tools.url('mcp') }];
    const model = { provider: 'demo', model: 'demo' };
    const body = { name: unique('agent'), config: cluster.config({ model, tools }) };
    const created = await user.on().post(`/projects/${projectId}/agents/v2`, body);
    expect(created.status, created.text).to.be.oneOf([201, 400]);
    if (created.status === 201) {
      const turn = await new Chat(user, projectId, String(created.json().id)).turn('tool');
      for (const result of turn.of('tool-result')) expect(result.isError).to.equal(true);
    }
    expect(cluster.tools.calls).to.have.length(0);
  });
});

describe('with ALLOW_PRIVATE_NETWORK (section 1)', () => {
  const cluster = useCluster({ mains: 1, workers: 1 });

  it('a tool’s redirect is not followed to another scheme, nor for ever', async () => {
    const server = createServer((request, response) => {
      const location = request.url === '/loop' ? '/loop' : 'file:///etc/passwd';
      response.writeHead(307, { location }).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    try {
      for (const path of ['loop', 'file']) {
        const tool = cluster.httpTool('hop', { url: `http://127.0.0.1:${port}/${path}` });
        const chat = await cluster.newChat({ tools: [tool] });
        const marker = unique(path);
        cluster.model.on(marker, callTool('hop', {}), say('ok'));
        const turn = await chat.turn(marker);
        expect(turn.of('tool-result')[0]).to.include({ isError: true });
        expect(turn.status).to.equal('success');
      }
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });
});
