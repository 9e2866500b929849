import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { Chat } from '../support/chat.js';
import type { Role, TestUser } from '../support/cluster.js';
import { unique } from '../support/environment.js';
import type { HttpResponse } from '../support/http.js';
import { expectProblem } from '../support/problem.js';
import { useCluster } from '../support/suite.js';

describe('who may do what (section 2)', () => {
  const cluster = useCluster();
  let chat: Chat;
  let sessionId: string;
  let executionId: string;
  const members = {} as Record<Role, TestUser>;
  let stranger: TestUser;

  before(async () => {
    chat = await cluster.newChat();
    for (const role of ['viewer', 'user', 'editor', 'admin'] as const) {
      members[role] = await cluster.newUser(unique(role));
      await cluster.addMember(chat.user, chat.projectId, members[role], role);
    }
    stranger = await cluster.newUser();
    ({ sessionId, executionId } = await chat.turn('A private word'));
  });

  describe('without a right token', () => {
    const paths = ['/me', '/projects', '/push', '/admin/users'];
    for (const path of paths) {
      it(`401 for ${path}`, async () => {
        expectProblem(await cluster.anonymous().get(path), 401, 'unauthorized');
        expectProblem(await cluster.bearer('wrong').get(path), 401, 'unauthorized');
      });
    }

    it('401 before anything else is looked at', async () => {
      expectProblem(await cluster.anonymous().post(chat.path(), '{'), 401, 'unauthorized');
      expectProblem(await cluster.anonymous().post(`/projects/${randomUUID()}/agents/v2`, {}), 401, 'unauthorized');
    });

    it('401 for other schemes and malformed headers', async () => {
      for (const authorization of ['Bearer', 'Bearer ', 'Basic eDp5', `Token ${chat.user.token}`, chat.user.token]) {
        const response = await cluster.anonymous().get('/me', { headers: { authorization } });
        expectProblem(response, 401, 'unauthorized');
      }
    });
  });

  describe('as a user with a token', () => {
    it('says who one is', async () => {
      const me = (await chat.http().expect(200, '/me')).json();
      expect(JSON.stringify(me)).to.contain(chat.user.id);
    });

    it('shows a token once and stores no copy that works', async () => {
      const users = await cluster.admin().expect(200, '/admin/users');
      expect(users.text).not.to.contain(chat.user.token);
      expect(await cluster.db.tablesHolding(chat.user.token)).to.deep.equal([]);
      expect(await cluster.db.tablesHolding(chat.user.id), 'the search itself').not.to.deep.equal([]);
    });

    it('takes a revoked token no more, on any main', async () => {
      const path = `/admin/users/${stranger.id}/tokens`;
      const issued = (await cluster.admin().expect(201, path, { method: 'POST', body: { name: 'second' } })).json<{
        id: string;
        token: string;
      }>();
      await cluster.bearer(issued.token, 1).expect(200, '/me');
      const revoked = await cluster.admin().delete(`${path}/${issued.id}`);
      expect(revoked.status).to.be.within(200, 204);
      for (const main of [0, 1])
        expectProblem(await cluster.bearer(issued.token, main).get('/me'), 401, 'unauthorized');
      await stranger.on().expect(200, '/me');
    });

    it('403 for the admin API', async () => {
      expectProblem(await chat.http().get('/admin/users'), 403, 'forbidden');
      expectProblem(await chat.http().post('/admin/users', { email: 'x@example.org', name: 'x' }), 403, 'forbidden');
    });
  });

  describe('the scopes of the roles', () => {
    const agents = () => `/projects/${chat.projectId}/agents/v2`;
    const body = () => ({ name: unique('agent'), config: cluster.config() });
    const requests: Record<string, { allowed: Role[]; ask: (user: TestUser) => Promise<HttpResponse> }> = {
      'reading agents': {
        allowed: ['viewer', 'user', 'editor', 'admin'],
        ask: (user) => user.on().get(agents()),
      },
      'reading one’s sessions': {
        allowed: ['viewer', 'user', 'editor', 'admin'],
        ask: (user) => user.on().get(chat.path()),
      },
      'sending a message': {
        allowed: ['user', 'editor', 'admin'],
        ask: (user) => user.on().post(chat.path(), { message: 'x' }, { headers: { accept: 'application/json' } }),
      },
      'creating an agent': {
        allowed: ['editor', 'admin'],
        ask: (user) => user.on().post(agents(), body()),
      },
      'changing an agent': {
        allowed: ['editor', 'admin'],
        ask: (user) => user.on().put(`${agents()}/${chat.agentId}`, body()),
      },
      'creating a credential': {
        allowed: ['editor', 'admin'],
        ask: (user) =>
          user.on().post(`/projects/${chat.projectId}/credentials`, { name: 'key', data: { apiKey: 'sk-1' } }),
      },
      'changing members': {
        allowed: ['admin'],
        ask: (user) => user.on().put(`/projects/${chat.projectId}/members/${members.viewer.id}`, { role: 'viewer' }),
      },
    };
    for (const [what, { allowed, ask }] of Object.entries(requests)) {
      for (const role of ['viewer', 'user', 'editor', 'admin'] as const) {
        const may = allowed.includes(role);
        it(`${what}: ${role} ${may ? 'may' : 'gets 403'}`, async () => {
          const response = await ask(members[role]);
          if (may) expect(response.status, response.text).to.be.within(200, 204);
          else expectProblem(response, 403, 'forbidden');
        });
      }
      it(`${what}: 404 for somebody who is no member`, async () => {
        expectProblem(await ask(stranger), 404, 'not_found');
      });
    }
  });

  describe('the order of the checks', () => {
    const nowhere = randomUUID();

    it('no membership (404) comes before a bad body', async () => {
      expectProblem(await chat.as(stranger).post('{'), 404, 'not_found');
    });

    it('a missing scope (403) comes before a missing agent and a bad body', async () => {
      const path = `/projects/${chat.projectId}/agents/v2/${nowhere}/chat`;
      expectProblem(await members.viewer.on().post(path, '{'), 403, 'forbidden');
      expectProblem(
        await members.viewer.on().put(`/projects/${chat.projectId}/agents/v2/${nowhere}`, {}),
        403,
        'forbidden',
      );
    });

    it('a missing agent (404) comes before a bad body', async () => {
      const path = `/projects/${chat.projectId}/agents/v2/${nowhere}/chat`;
      expectProblem(await members.user.on().post(path, { message: 1 }), 404, 'not_found');
    });

    it('answers an unknown project and a foreign one with the same body', async () => {
      const foreign = await stranger.on().get(`/projects/${chat.projectId}/agents/v2`);
      const unknown = await stranger.on().get(`/projects/${nowhere}/agents/v2`);
      expectProblem(foreign, 404, 'not_found');
      expect(foreign.json()).to.deep.equal(unknown.json());
    });

    it('takes ids that are no UUIDs for ones that do not exist', async () => {
      for (const path of [
        '/projects/x/agents/v2',
        `/projects/${chat.projectId}/agents/v2/%00`,
        chat.path('/x/messages'),
      ]) {
        expectProblem(await chat.http().get(path), 404, 'not_found');
      }
    });
  });

  describe('a Test session is private to its owner', () => {
    const reads = () => [
      `/${sessionId}/messages`,
      `/${sessionId}/executions`,
      `/${sessionId}/queue`,
      `/${sessionId}/executions/${executionId}/events`,
      `/${sessionId}/executions/${executionId}/tool-calls/${randomUUID()}`,
    ];

    it('against every other member, admins of the project included: the 404 of one that never was', async () => {
      for (const role of ['viewer', 'user', 'editor', 'admin'] as const) {
        for (const read of reads()) {
          const theirs = await members[role].on().get(chat.path(read));
          expectProblem(theirs, 404, 'not_found');
          const none = await members[role].on().get(chat.path(read.replace(sessionId, randomUUID())));
          expect(theirs.json(), read).to.deep.equal(none.json());
        }
      }
    });

    it('against the instance admin', async () => {
      for (const read of reads()) {
        const response = await cluster.admin().get(chat.path(read));
        expect(response.status, `${read}: ${response.text}`).to.be.oneOf([403, 404]);
      }
    });

    it('against Stop and deletion by others', async () => {
      const { admin } = members;
      const stop = await admin.on().delete(chat.path(`/${sessionId}/executions/${executionId}`));
      expectProblem(stop, 404, 'not_found');
      expectProblem(await admin.on().delete(chat.path(`/${sessionId}`)), 404, 'not_found');
      expect((await chat.transcript(sessionId)).messages).to.have.length(2);
    });

    it('is in nobody else’s list', async () => {
      const list = await members.admin.on().expect(200, chat.path());
      expect(list.text).not.to.contain(sessionId);
    });

    it('is not reachable under another agent or project of the same owner', async () => {
      const agentId = await cluster.newAgent(chat.user, chat.projectId);
      const elsewhere = new Chat(chat.user, chat.projectId, agentId);
      expectProblem(await chat.http().get(elsewhere.path(`/${sessionId}/messages`)), 404, 'not_found');
      const projectId = await cluster.newProject(chat.user);
      const other = new Chat(chat.user, projectId, chat.agentId);
      expectProblem(await chat.http().get(other.path(`/${sessionId}/messages`)), 404, 'not_found');
    });
  });
});
