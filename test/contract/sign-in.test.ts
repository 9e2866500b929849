import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import type { HttpClient, HttpResponse } from '../support/http.js';
import { expectProblem } from '../support/problem.js';
import { useCluster } from '../support/suite.js';

describe('signing in with a browser (section 2)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat();
  });
  const signIn = (token: string, main = 0, headers: Record<string, string> = sameOrigin(main)) =>
    cluster.anonymous(main).post('/auth/session', { token }, { headers });
  const sameOrigin = (main: number) => ({ 'sec-fetch-site': 'same-origin', origin: cluster.anonymous(main).baseUrl });

  /** A browser's requests: the cookie, and where they come from. */
  async function browser(token: string, headers: Record<string, string> = sameOrigin(0)): Promise<HttpClient> {
    const response = await signIn(token);
    return cluster.anonymous().withHeaders({ cookie: cookieOf(response).split(';')[0] ?? '', ...headers });
  }

  it('sets a cookie for a token: HttpOnly, SameSite=Strict, 30 days', async () => {
    const response = await signIn(chat.user.token);
    expect(response.status, response.text).to.be.within(200, 204);
    const cookie = cookieOf(response);
    expect(cookie)
      .to.match(/;\s*httponly/i)
      .and.to.match(/;\s*samesite=strict/i);
    expect(cookie).not.to.match(/;\s*secure/i);
    expect(lifetimeDays(cookie)).to.be.closeTo(30, 0.1);
    expect(cookie).not.to.contain(chat.user.token);
    expect(response.text).not.to.contain(chat.user.token);
  });

  it('serves the signed-in browser on every main', async () => {
    const signedIn = await browser(chat.user.token);
    for (const main of [0, 1]) {
      const me = await signedIn.at(cluster.anonymous(main).baseUrl).expect(200, '/me');
      expect(me.text).to.contain(chat.user.id);
    }
  });

  it('401 for a wrong token, 400 for none, and no cookie', async () => {
    const response = await signIn('wrong');
    expectProblem(response, 401, 'unauthorized');
    expect(response.headers['set-cookie']).to.equal(undefined);
    const headers = sameOrigin(0);
    expectProblem(await cluster.anonymous().post('/auth/session', {}, { headers }), 400, 'invalid_request');
  });

  it('takes the admin token too', async () => {
    const signedIn = await browser(cluster.adminToken);
    await signedIn.expect(200, '/admin/users');
  });

  describe('a request that changes something must come from the same origin', () => {
    const create = (client: HttpClient) => client.post('/projects', { name: 'made by a browser' });

    it('takes what the browser calls same-origin', async () => {
      expect((await create(await browser(chat.user.token))).status).to.equal(201);
    });

    it('takes an Origin that is its own where Sec-Fetch-Site is missing', async () => {
      const origin = cluster.anonymous().baseUrl;
      expect((await create(await browser(chat.user.token, { origin }))).status).to.equal(201);
    });

    const foreign: Record<string, Record<string, string>> = {
      'another site': { 'sec-fetch-site': 'cross-site' },
      'no site': { 'sec-fetch-site': 'none' },
      'an Origin that says otherwise': { 'sec-fetch-site': 'same-origin', origin: 'https://elsewhere.example' },
      'another origin of the site': { 'sec-fetch-site': 'same-site' },
      'a foreign Origin': { origin: 'https://evil.example' },
      'the Origin null': { origin: 'null' },
      'no sign of an origin': {},
    };
    for (const [what, headers] of Object.entries(foreign)) {
      it(`403 for ${what}`, async () => {
        const client = await browser(chat.user.token, headers);
        expectProblem(await create(client), 403, 'forbidden');
        expectProblem(await client.delete('/auth/session'), 403, 'forbidden');
      });
    }

    it('lets a foreign origin read nothing by CORS', async () => {
      const headers = { origin: 'https://evil.example', 'access-control-request-method': 'POST' };
      for (const method of ['GET', 'OPTIONS']) {
        const response = await cluster.bearer(chat.user.token).request('/me', { method, headers });
        expect(Object.keys(response.headers).filter((name) => name.startsWith('access-control'))).to.deep.equal([]);
      }
    });

    it('asks nothing of the kind of a bearer token', async () => {
      const headers = { origin: 'https://elsewhere.example', 'sec-fetch-site': 'cross-site' };
      const response = await chat.http().post('/projects', { name: 'by a script' }, { headers });
      expect(response.status).to.equal(201);
    });
  });

  it('signs out: the cookie is dead on every main', async () => {
    const signedIn = await browser(chat.user.token);
    expect((await signedIn.delete('/auth/session')).status).to.be.within(200, 204);
    for (const main of [0, 1]) {
      expectProblem(await signedIn.at(cluster.anonymous(main).baseUrl).get('/me'), 401, 'unauthorized');
    }
  });

  it('streams to a browser', async () => {
    const signedIn = await browser(chat.user.token);
    const stream = await signedIn.openSse(chat.path(), { method: 'POST', body: { message: 'from a browser' } });
    expect((await stream.all()).at(-1)?.data).to.include({ type: 'done', status: 'success' });
  });

  describe('a one-time link', () => {
    const makeLink = async () => {
      const response = await cluster.admin().post(`/admin/users/${chat.user.id}/link`);
      expect(response.status, response.text).to.be.within(200, 201);
      return codeOf(response);
    };

    it('signs in once, and only once, when two browsers race on two mains', async () => {
      const code = await makeLink();
      const answers = await Promise.all([signIn(code, 0), signIn(code, 1)]);
      const good = answers.filter((answer) => answer.status < 300);
      expect(good, answers.map((answer) => `${answer.status} ${answer.text}`).join(' ')).to.have.length(1);
      expectProblem(answers.find((answer) => answer.status >= 300) as HttpResponse, 401, 'unauthorized');
      expectProblem(await signIn(code), 401, 'unauthorized');
    });

    it('is no bearer token', async () => {
      const code = await makeLink();
      expectProblem(await cluster.bearer(code).get('/me'), 401, 'unauthorized');
    });

    it('403 for anybody but the instance admin', async () => {
      expectProblem(await chat.http().post(`/admin/users/${chat.user.id}/link`), 403, 'forbidden');
    });
  });
});

function cookieOf(response: HttpResponse): string {
  const cookies = response.headers['set-cookie'] ?? [];
  expect(cookies, `${response.status} ${response.text}`).to.have.length(1);
  return cookies[0] ?? '';
}

function lifetimeDays(cookie: string): number {
  const maxAge = /max-age=(\d+)/i.exec(cookie)?.[1];
  if (maxAge !== undefined) return Number(maxAge) / 86_400;
  const expires = /expires=([^;]+)/i.exec(cookie)?.[1];
  return (Date.parse(expires ?? '') - Date.now()) / 86_400_000;
}

/** The code in the fragment of the link that the answer holds, with or without a name before it. */
function codeOf(response: HttpResponse): string {
  const fragment = /https?:\/\/[^"#]+#([^"]+)/.exec(response.text)?.[1] ?? '';
  expect(fragment, `a link with a fragment in ${response.text}`).not.to.equal('');
  return fragment.replace(/^[a-z]+=/i, '');
}
