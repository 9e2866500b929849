import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { Chat } from '../support/chat.js';
import type { TestUser } from '../support/cluster.js';
import { unique } from '../support/environment.js';
import { say } from '../support/model-script.js';
import { expectProblem } from '../support/problem.js';
import { useCluster } from '../support/suite.js';

describe('agents (section 3)', () => {
  const cluster = useCluster();
  let user: TestUser;
  let projectId: string;
  let agents: string;
  beforeEach(async () => {
    user = await cluster.newUser();
    projectId = await cluster.newProject(user);
    agents = `/projects/${projectId}/agents/v2`;
  });

  it('are created, read, listed, changed and deleted, on any main', async () => {
    const config = cluster.config({ tools: [cluster.httpTool('look')] });
    const created = (await user.on(0).expect(201, agents, { method: 'POST', body: { name: 'First', config } })).json();
    expect(created).to.include({ name: 'First' });
    expect(created).to.have.all.keys('id', 'name', 'config', 'createdAt', 'updatedAt');
    expect(created.config).to.deep.include({ instructions: config.instructions, limits: config.limits });
    expect((await user.on(1).expect(200, `${agents}/${created.id}`)).json()).to.deep.equal(created);
    const list = (await user.on(1).expect(200, agents)).json<{ agents: { id: string }[] }>();
    expect(list.agents.map((agent) => agent.id)).to.deep.equal([created.id]);
    const body = { name: 'Second', config: { ...config, instructions: 'Be brief.' } };
    const changed = (await user.on(1).expect(200, `${agents}/${created.id}`, { method: 'PUT', body })).json();
    expect(changed).to.include({ id: created.id, name: 'Second', createdAt: created.createdAt });
    expect(changed.config).to.include({ instructions: 'Be brief.' });
    expect((await user.on(0).delete(`${agents}/${created.id}`)).status).to.be.within(200, 204);
    expectProblem(await user.on(1).get(`${agents}/${created.id}`), 404, 'not_found');
    expectProblem(await user.on(1).delete(`${agents}/${created.id}`), 404, 'not_found');
  });

  it('400 for a configuration that is none, and nothing is created', async () => {
    const good = cluster.config();
    const tool = cluster.httpTool('look');
    const bad: Record<string, unknown> = {
      'no name': { config: good },
      'no configuration': { name: 'x' },
      'an unknown provider': { name: 'x', config: { ...good, model: { ...good.model, provider: 'oracle' } } },
      'no model name': { name: 'x', config: { ...good, model: { provider: 'openai' } } },
      'an unknown kind of tool': { name: 'x', config: { ...good, tools: [{ ...tool, type: 'magic' }] } },
      'two tools of one name': { name: 'x', config: { ...good, tools: [tool, tool] } },
      'a tool name that models refuse': { name: 'x', config: { ...good, tools: [{ ...tool, name: 'a b' }] } },
      'a tool address that is none': { name: 'x', config: { ...good, tools: [{ ...tool, url: 'look' }] } },
      'a file for a tool address': { name: 'x', config: { ...good, tools: [{ ...tool, url: 'file:///etc/passwd' }] } },
      'no steps at all': { name: 'x', config: { ...good, limits: { ...good.limits, maxSteps: 0 } } },
      'U+0000 in the instructions': { name: 'x', config: { ...good, instructions: 'a\0b' } },
    };
    for (const [what, body] of Object.entries(bad)) {
      const response = await user.on().post(agents, body);
      expect(response.status, `${what}: ${response.text}`).to.equal(400);
      expectProblem(response, 400, 'invalid_request');
    }
    expect((await user.on().expect(200, agents)).json()).to.deep.equal({ agents: [] });
  });

  it('400 for a credential of nowhere, or of another project', async () => {
    const elsewhere = await cluster.newProject(user);
    const path = `/projects/${elsewhere}/credentials`;
    const body = { name: 'key', data: { apiKey: 'sk-elsewhere' } };
    const { id } = (await user.on().expect(201, path, { method: 'POST', body })).json();
    for (const credentialId of [randomUUID(), id]) {
      const config = cluster.config({ model: { ...cluster.config().model, credentialId } });
      expectProblem(await user.on().post(agents, { name: 'x', config }), 400, 'invalid_request');
    }
  });

  it('a change touches the next turn, not the running one', async () => {
    const agentId = await cluster.newAgent(user, projectId, { instructions: 'Old instructions.' });
    const chat = new Chat(user, projectId, agentId);
    const [marker, next] = [unique('before'), unique('after')];
    const held = cluster.model.hold(marker);
    const stream = await chat.send(marker);
    await held.reached();
    const body = { name: 'changed', config: cluster.config({ instructions: 'New instructions.' }) };
    await user.on(1).expect(200, `${agents}/${agentId}`, { method: 'PUT', body });
    held.open();
    const sessionId = String((await stream.all())[0]?.data.sessionId);
    await chat.turn(next, { sessionId });
    const systems = [marker, next].map((one) => cluster.model.requestsFor(one)[0]?.body.messages?.[0]?.content);
    expect(JSON.stringify(systems[0])).to.contain('Old instructions.');
    expect(JSON.stringify(systems[1])).to.contain('New instructions.');
  });

  it('deletion cancels running turns, removes pending items, and answers 404 at once', async () => {
    const agentId = await cluster.newAgent(user, projectId);
    const chat = new Chat(user, projectId, agentId);
    const marker = unique('doomed');
    const held = cluster.model.hold(marker);
    const running = await chat.send(marker);
    const { sessionId } = (await running.until('execution-started')).data;
    await held.reached();
    const waiting = await chat.send('never started', { sessionId: String(sessionId), main: 1 });
    const { queueId } = (await waiting.until('message-queued')).data;
    expect((await user.on(1).delete(`${agents}/${agentId}`)).status).to.be.within(200, 204);
    for (const main of [0, 1]) {
      expectProblem(await chat.post({ message: 'x' }, { main }), 404, 'not_found');
      expectProblem(await chat.http(main).get(chat.path(`/${sessionId}/messages`)), 404, 'not_found');
    }
    expect((await running.all()).at(-1)?.data).to.include({ type: 'done', status: 'cancelled' });
    expect((await waiting.all()).at(-1)?.data).to.deep.equal({ type: 'message-removed', queueId });
    expect(await (await cluster.model.request(marker)).over).to.equal('aborted');
    expect(cluster.model.requestsFor('never started')).to.have.length(0);
  });

  describe('the demo model', () => {
    it('answers without a key, through the same events', async () => {
      const agentId = await cluster.newAgent(user, projectId, { model: { provider: 'demo', model: 'demo' } });
      const turn = await new Chat(user, projectId, agentId).turn('Hello!');
      expect(turn.status).to.equal('success');
      expect(turn.text).not.to.equal('');
    });
  });

  describe('credentials', () => {
    const path = () => `/projects/${projectId}/credentials`;
    const secret = 'sk-secret-of-this-test-0987654321';

    it('are created, listed and deleted, and never come back out', async () => {
      const body = { name: 'My key', data: { apiKey: secret } };
      const created = await user.on().expect(201, path(), { method: 'POST', body });
      const { id } = created.json<{ id: string }>();
      expect(created.json()).to.deep.equal({ id, name: 'My key' });
      const list = await user.on(1).expect(200, path());
      expect(list.json()).to.deep.equal({ credentials: [{ id, name: 'My key' }] });
      expect(await cluster.db.tablesHolding(secret)).to.deep.equal([]);
      expect((await user.on().delete(`${path()}/${id}`)).status).to.be.within(200, 204);
      expectProblem(await user.on(1).delete(`${path()}/${id}`), 404, 'not_found');
      expect((await user.on().expect(200, path())).json()).to.deep.equal({ credentials: [] });
    });

    it('are read afresh for each turn, so a deleted one is used no more', async () => {
      const created = await user
        .on()
        .expect(201, path(), { method: 'POST', body: { name: 'k', data: { apiKey: secret } } });
      const credentialId = created.json().id;
      const model = { ...cluster.config().model, credentialId };
      const chat = new Chat(user, projectId, await cluster.newAgent(user, projectId, { model }));
      const [good, gone] = [unique('with-key'), unique('without-key')];
      cluster.model.on(good, say('ok'));
      await chat.turn(good);
      expect((await cluster.model.request(good)).headers.authorization).to.equal(`Bearer ${secret}`);
      await user.on().delete(`${path()}/${credentialId}`);
      await chat.turn(gone).catch(() => undefined);
      for (const request of cluster.model.requestsFor(gone)) {
        expect(request.headers.authorization).not.to.equal(`Bearer ${secret}`);
      }
    });

    it('400 without a key', async () => {
      expectProblem(await user.on().post(path(), { name: 'x' }), 400, 'invalid_request');
      expectProblem(await user.on().post(path(), { name: 'x', data: {} }), 400, 'invalid_request');
    });
  });
});
