import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { TestUser } from '../support/cluster.js';
import { unique } from '../support/environment.js';
import { expectProblem } from '../support/problem.js';
import { useCluster } from '../support/suite.js';

describe('projects and their members (section 2)', () => {
  const cluster = useCluster();
  let owner: TestUser;
  let projectId: string;
  const member = (user: TestUser) => `/projects/${projectId}/members/${user.id}`;

  beforeEach(async () => {
    owner = await cluster.newUser();
    projectId = await cluster.newProject(owner);
  });

  it('makes whoever creates a project its admin, and lists one’s own projects only', async () => {
    const list = (await owner.on(1).expect(200, '/projects')).json<{ projects: { id: string; name: string }[] }>();
    expect(list.projects.map((project) => project.id)).to.deep.equal([projectId]);
    expect(list.projects[0]?.name).to.be.a('string');
    const other = await cluster.newUser();
    expect((await other.on().expect(200, '/projects')).json()).to.deep.equal({ projects: [] });
  });

  it('400 for a project without a name', async () => {
    expectProblem(await owner.on().post('/projects', {}), 400, 'invalid_request');
    expectProblem(await owner.on().post('/projects', { name: '' }), 400, 'invalid_request');
  });

  it('adds a member, changes the role and removes them, on every main at once', async () => {
    const guest = await cluster.newUser();
    const agents = `/projects/${projectId}/agents/v2`;
    await cluster.addMember(owner, projectId, guest, 'viewer');
    await guest.on(1).expect(200, agents);
    expectProblem(await guest.on(1).post(agents, {}), 403, 'forbidden');
    await cluster.addMember(owner, projectId, guest, 'editor');
    await guest.on(1).expect(201, agents, { method: 'POST', body: { name: 'a', config: cluster.config() } });
    expect((await owner.on().delete(member(guest))).status).to.be.within(200, 204);
    expectProblem(await guest.on(1).get(agents), 404, 'not_found');
  });

  it('400 for an unknown role, 404 for an unknown user', async () => {
    const guest = await cluster.newUser();
    expectProblem(await owner.on().put(member(guest), { role: 'king' }), 400, 'invalid_request');
    const path = `/projects/${projectId}/members/${randomUUID()}`;
    expectProblem(await owner.on().put(path, { role: 'user' }), 404, 'not_found');
    expectProblem(await owner.on().delete(member(guest)), 404, 'not_found');
  });

  it('409 last_admin for the last admin who leaves or steps down', async () => {
    expectProblem(await owner.on().delete(member(owner)), 409, 'last_admin');
    expectProblem(await owner.on().put(member(owner), { role: 'user' }), 409, 'last_admin');
    const second = await cluster.newUser();
    await cluster.addMember(owner, projectId, second, 'admin');
    expect((await owner.on().delete(member(owner))).status).to.be.within(200, 204);
  });

  it('keeps one admin when the last two leave at once', async () => {
    const second = await cluster.newUser();
    await cluster.addMember(owner, projectId, second, 'admin');
    const answers = await Promise.all([owner.on(0).delete(member(owner)), second.on(1).delete(member(second))]);
    const kept = answers.filter((answer) => answer.status === 409);
    expect(kept, answers.map((answer) => answer.text).join(' ')).to.have.length(1);
  });

  describe('losing something while it is used', () => {
    it('removal ends the user’s streams there within 5 s and cancels their running turn', async () => {
      const agentId = await cluster.newAgent(owner, projectId);
      const guest = await cluster.newUser();
      await cluster.addMember(owner, projectId, guest, 'user');
      const marker = unique('removed');
      const held = cluster.model.hold(marker);
      const path = `/projects/${projectId}/agents/v2/${agentId}/chat`;
      const stream = await guest.on(1).openSse(path, { method: 'POST', body: { message: marker } });
      await stream.until('execution-started');
      await held.reached();
      await owner.on(0).delete(member(guest));
      await stream.end(5_000);
      const request = await cluster.model.request(marker);
      expect(await request.over, 'the request to the model').to.equal('aborted');
    });

    it('a role without agent:execute cancels the running turn; what is pending stays pending', async () => {
      const agentId = await cluster.newAgent(owner, projectId);
      const guest = await cluster.newUser();
      await cluster.addMember(owner, projectId, guest, 'user');
      const marker = unique('demoted');
      const held = cluster.model.hold(marker);
      const path = `/projects/${projectId}/agents/v2/${agentId}/chat`;
      const stream = await guest.on(1).openSse(path, { method: 'POST', body: { message: marker } });
      const { sessionId } = (await stream.until('execution-started')).data;
      await held.reached();
      const headers = { accept: 'application/json' };
      const waiting = unique('waiting');
      await guest.on().expect(202, path, { method: 'POST', body: { message: waiting, sessionId }, headers });
      await cluster.addMember(owner, projectId, guest, 'viewer');
      expect((await stream.until('done')).data.status).to.equal('cancelled');
      const queue = (await guest.on().expect(200, `${path}/${sessionId}/queue`)).json<{ items: unknown[] }>();
      expect(queue.items).to.have.length(1);
      await cluster.addMember(owner, projectId, guest, 'user');
      await cluster.model.request(waiting);
    });

    it('a revoked token ends the streams that it opened within 5 s', async () => {
      const tokens = `/admin/users/${owner.id}/tokens`;
      const issued = await cluster.admin().expect(201, tokens, { method: 'POST', body: { name: 'short' } });
      const { id, token } = issued.json<{ id: string; token: string }>();
      const push = await cluster.bearer(token, 1).openSse('/push');
      await push.until('connected');
      await cluster.admin(0).delete(`${tokens}/${id}`);
      await push.end(5_000);
    });
  });

  describe('the instance admin', () => {
    it('creates users and lists them', async () => {
      const name = unique('listed');
      const body = { email: `${name}@example.org`, name };
      const created = (await cluster.admin().expect(201, '/admin/users', { method: 'POST', body })).json();
      expect(created).to.deep.include(body);
      const { users } = (await cluster.admin(1).expect(200, '/admin/users')).json<{ users: { id: string }[] }>();
      expect(users.find((user) => user.id === created.id)).to.deep.include(body);
    });

    it('400 for a user without an email address, 404 for a token of nobody', async () => {
      expectProblem(await cluster.admin().post('/admin/users', { name: 'x' }), 400, 'invalid_request');
      const path = `/admin/users/${randomUUID()}/tokens`;
      expectProblem(await cluster.admin().post(path, { name: 'x' }), 404, 'not_found');
    });
  });
});
