import { hashOf } from '@turnkeep/shared/access/secret';
import { newId } from '@turnkeep/shared/contract/ids';
import { expect } from 'chai';
import { expectProblem } from '../../../test/support/problem.js';
import { ADMIN_TOKEN, demoAgent, useInProcess } from './support/in-process.js';

describe('who makes a request, and may they (section 2)', () => {
  const app = useInProcess();
  let user: Awaited<ReturnType<typeof app.newUser>>;

  before(async () => {
    user = await app.newUser();
  });

  describe('the order of the checks', () => {
    let project: string;
    let agents: string;

    before(async () => {
      project = await app.newProject({ [user.id]: 'viewer' });
      agents = `/projects/${project}/agents/v2`;
    });

    it('401 comes first, with a challenge, also for routes that there are not', async () => {
      for (const path of ['/nowhere', agents, `/projects/${newId()}/agents/v2`, '/admin/users']) {
        const answer = await app.anonymous().post(path, '{');
        expectProblem(answer, 401, 'unauthorized');
        expect(answer.headers['www-authenticate']).to.equal('Bearer');
      }
    });

    it('404 for a project of others comes before its scopes and the body', async () => {
      const others = await app.newProject({});
      const answers = [
        await user.http.post(`/projects/${others}/agents/v2`, '{'),
        await user.http.post(`/projects/${newId()}/agents/v2`, '{'),
        await user.http.post('/projects/no-uuid/agents/v2', '{'),
      ];
      for (const answer of answers) expectProblem(answer, 404, 'not_found');
      expect(new Set(answers.map(({ text }) => text)).size).to.equal(1);
    });

    it('403 for a scope comes before a missing agent and the body', async () => {
      expectProblem(await user.http.put(`${agents}/${newId()}`, '{'), 403, 'forbidden');
    });

    it('404 for an agent comes before the body; one of another project is as good as none', async () => {
      const editor = await app.newUser();
      const [here, there] = [
        await app.newProject({ [editor.id]: 'editor' }),
        await app.newProject({ [editor.id]: 'editor' }),
      ];
      const agent = await editor.http.post(`/projects/${there}/agents/v2`, demoAgent());
      for (const id of [newId(), String(agent.json().id), 'x', '%E0%A4%A', '%00'])
        expectProblem(await editor.http.put(`/projects/${here}/agents/v2/${id}`, '{'), 404, 'not_found');
      expectProblem(
        await editor.http.put(`/projects/${there}/agents/v2/${agent.json().id}`, '{'),
        400,
        'invalid_request',
      );
    });

    it('an id in upper case is the same id', async () => {
      expect((await user.http.get(`/projects/${project.toUpperCase()}/agents/v2`)).status).to.equal(200);
    });
  });

  describe('the instance admin', () => {
    it('is no user and no member of any project', async () => {
      const project = await app.newProject({ [user.id]: 'admin' });
      expectProblem(await app.admin().get('/projects'), 403, 'forbidden');
      expectProblem(await app.admin().get(`/projects/${project}/agents/v2`), 404, 'not_found');
      expect((await app.admin().get('/me')).json()).to.deep.equal({
        id: null,
        email: null,
        name: null,
        instanceAdmin: true,
      });
    });

    it('makes no second user of an e-mail address in another case', async () => {
      const body = { email: 'Ada@example.org', name: 'Ada' };
      await app.admin().expect(201, '/admin/users', { method: 'POST', body });
      const again = await app.admin().post('/admin/users', { ...body, email: 'ada@EXAMPLE.org' });
      expectProblem(again, 400, 'invalid_request');
      expect(again.json().errors).to.deep.equal([{ pointer: '/email', message: 'belongs to another user' }]);
    });

    it('is signed out in every browser by another ADMIN_TOKEN', async () => {
      const cookie = await signIn(ADMIN_TOKEN);
      expect((await app.browser(cookie).get('/admin/users')).status).to.equal(200);
      await app.db.query('update web_sessions set admin_hash = $2 where hash = $1', [hashOf(cookie), hashOf('old')]);
      expectProblem(await app.browser(cookie).get('/admin/users'), 401, 'unauthorized');
    });
  });

  describe('a browser', () => {
    it('is not asked for its cookie where it sends an Authorization header, whatever stands there', async () => {
      const cookie = await signIn(user.token);
      const both = { cookie: `turnkeep_session=${cookie}`, authorization: 'Basic eDp5' };
      expectProblem(await app.anonymous().withHeaders(both).get('/me'), 401, 'unauthorized');
    });

    it('stays signed in for 30 days from its last use, and is written down once a day at most', async () => {
      const cookie = await signIn(user.token);
      expect((await app.browser(cookie).get('/me')).headers['set-cookie']).to.equal(undefined);
      await setDaysLeft(cookie, 28.5);
      const prolonged = await app.browser(cookie).get('/me');
      expect(prolonged.headers['set-cookie']?.[0]).to.contain(`turnkeep_session=${cookie}; Path=/; Max-Age=2592000`);
      expect(await daysLeft(cookie)).to.be.closeTo(30, 0.01);
      await setDaysLeft(cookie, -0.001);
      expectProblem(await app.browser(cookie).get('/me'), 401, 'unauthorized');
    });

    it('is signed out with the token that signed it in; one of a link is not', async () => {
      const owner = await app.newUser();
      const link = await app.admin().post(`/admin/users/${owner.id}/link`);
      const [byToken, byLink] = [await signIn(owner.token), await signIn(codeOf(link.text))];
      await app.db.query('delete from tokens where user_id = $1', [owner.id]);
      expectProblem(await app.browser(byToken).get('/me'), 401, 'unauthorized');
      expect((await app.browser(byLink).get('/me')).status).to.equal(200);
    });

    it('is not signed in by a link after its 10 minutes', async () => {
      const code = codeOf((await app.admin().post(`/admin/users/${user.id}/link`)).text);
      await app.db.query("update sign_in_links set expires_at = now() - interval '1 second'");
      expectProblem(await app.anonymous().post('/auth/session', { token: code }), 401, 'unauthorized');
    });
  });

  async function signIn(token: string): Promise<string> {
    const answer = await app.anonymous().expect(200, '/auth/session', { method: 'POST', body: { token } });
    return /turnkeep_session=([^;]+);/.exec(String(answer.headers['set-cookie']))?.[1] ?? '';
  }

  async function setDaysLeft(cookie: string, days: number): Promise<void> {
    await app.db.query('update web_sessions set expires_at = now() + make_interval(secs => $2) where hash = $1', [
      hashOf(cookie),
      days * 86_400,
    ]);
  }

  async function daysLeft(cookie: string): Promise<number> {
    const [row] = await app.db.query<{ days: number }>(
      'select (extract(epoch from expires_at - now()) / 86400)::float8 as days from web_sessions where hash = $1',
      [hashOf(cookie)],
    );
    return row?.days ?? 0;
  }
});

describe('an installation without ADMIN_TOKEN', () => {
  const app = useInProcess({ env: { ADMIN_TOKEN: undefined } });

  it('has no admin API: 404 for users, 401 for strangers', async () => {
    const { http } = await app.newUser();
    expectProblem(await http.get('/admin/users'), 404, 'not_found');
    expectProblem(await http.get('/ops/queues'), 404, 'not_found');
    expectProblem(await app.anonymous().get('/admin/users'), 401, 'unauthorized');
    expectProblem(await app.admin().get('/admin/users'), 401, 'unauthorized');
  });
});

function codeOf(text: string): string {
  return /#([^"]+)"/.exec(text)?.[1] ?? '';
}
