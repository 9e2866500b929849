import { expect } from 'chai';
import { expectProblem } from '../../../test/support/problem.js';
import { ADMIN_TOKEN, useInProcess } from './support/in-process.js';

describe('the page and the board', () => {
  const app = useInProcess();

  it('serves the page to anybody, to be asked again each time', async () => {
    const page = await app.anonymous().get('/');
    expect(page.status).to.equal(200);
    expect(page.headers['content-type']).to.equal('text/html; charset=utf-8');
    expect(page.headers['cache-control']).to.equal('no-cache');
    const again = await app.anonymous().get('/', { headers: { 'if-none-match': page.headers.etag } });
    expect(again.status).to.equal(304);
    expect(again.bytes).to.have.length(0);
  });

  it('serves every file that the page names, and nothing that it does not', async () => {
    const page = await app.anonymous().get('/');
    const names = [...page.text.matchAll(/(?:src|href)="([^":]+)"/g)].map(([, name]) => name);
    expect(names).to.include.members(['app.js', 'style.css']);
    for (const name of names) expect((await app.anonymous().get(`/${name}`)).status, name).to.equal(200);
    for (const path of ['/..%2fpackage.json', '/app.js/', '/static/app.js', '/App.js'])
      expectProblem(await app.anonymous().get(path), 401, 'unauthorized');
  });

  it('allows nothing inline, no frame and no other server, and asks for no TLS that is not there', async () => {
    const { headers } = await app.anonymous().get('/');
    const policy = String(headers['content-security-policy']);
    expect(policy).to.contain("default-src 'self'").and.contain("frame-ancestors 'none'");
    expect(policy).not.to.match(/unsafe|upgrade-insecure/);
    expect(headers).to.include({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' });
    expect(headers).not.to.have.property('strict-transport-security');
  });

  it('keeps answers of the interface out of every cache', async () => {
    const { http } = await app.newUser();
    expect((await http.get('/me')).headers).to.include({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
  });

  describe('Bull Board', () => {
    it('is for the instance admin alone', async () => {
      const { http } = await app.newUser();
      expectProblem(await app.anonymous().get('/ops/queues'), 401, 'unauthorized');
      expectProblem(await http.get('/ops/queues/api/queues'), 403, 'forbidden');
    });

    it('shows the queue of turns to a browser of the admin, with nothing from elsewhere', async () => {
      const signIn = await app.anonymous().post('/auth/session', { token: ADMIN_TOKEN });
      const cookie = /turnkeep_session=([^;]+)/.exec(String(signIn.headers['set-cookie']))?.[1] ?? '';
      const page = await app.browser(cookie).get('/ops/queues');
      expect(page.status).to.equal(200);
      expect(page.text).to.contain('<base href="/ops/queues/"');
      expect(String(page.headers['content-security-policy'])).to.contain("default-src 'self'");
      const [script] = /static\/js\/main\.[^"]+/.exec(page.text) ?? [];
      expect((await app.browser(cookie).get(`/ops/queues/${script}`)).status).to.equal(200);
      const queues = await app.browser(cookie).get('/ops/queues/api/queues');
      expect(queues.status, queues.text).to.equal(200);
      expect(queues.text).to.contain('"name":"turns"');
    });
  });
});

describe('under a prefix, behind a proxy that ends TLS', () => {
  const app = useInProcess({ env: { PUBLIC_URL: 'https://example.org/chat', TRUST_PROXY: 'true' } });

  it('serves paths with the prefix and without it', async () => {
    for (const path of ['/chat/', '/', '/chat/app.js', '/app.js', '/chat/healthz'])
      expect((await app.anonymous().get(path)).status, path).to.equal(200);
    const bare = await app.anonymous().get('/chat');
    expect([bare.status, bare.headers.location]).to.deep.equal([308, '/chat/']);
    expectProblem(await app.anonymous().get('/chatter'), 401, 'unauthorized');
  });

  it('names the public address in links, and in the cookie its path', async () => {
    const { id, token } = await app.newUser();
    expect((await app.admin().post(`/admin/users/${id}/link`)).text).to.contain('https://example.org/chat/#lk_');
    const signIn = await app.anonymous().post('/chat/auth/session', { token });
    expect(String(signIn.headers['set-cookie'])).to.match(/; Path=\/chat; .*; Secure$/);
  });

  it('takes the origins of PUBLIC_URL and of the proxy for its own', async () => {
    const { token } = await app.newUser();
    const signIn = await app.anonymous().post('/auth/session', { token });
    const cookie = String(signIn.headers['set-cookie']).split(';')[0] ?? '';
    const create = async (headers: Record<string, string>) =>
      (
        await app
          .anonymous()
          .withHeaders({ cookie, ...headers })
          .post('/projects', { name: 'x' })
      ).status;
    const proxy = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'other.example' };
    expect(await create({ origin: 'https://example.org' })).to.equal(201);
    expect(await create({ origin: 'https://other.example', ...proxy })).to.equal(201);
    expect(await create({ origin: 'https://evil.example', ...proxy })).to.equal(403);
    expect(await create({ origin: 'http://example.org' })).to.equal(403);
  });
});
