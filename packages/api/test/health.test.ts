import { expect } from 'chai';
import { useInProcess } from './support/in-process.js';

describe('health and metrics (section 1)', () => {
  const app = useInProcess();

  it('asks for no sign-in', async () => {
    expect((await app.anonymous().get('/healthz')).json()).to.deep.equal({ status: 'ok' });
    const ready = await app.anonymous().get('/readyz');
    expect(ready.status).to.equal(200);
    expect(ready.json()).to.include({ status: 'ok', postgres: 'up', redis: 'up' });
  });

  it('counts requests by the pattern of their route, and never by path', async () => {
    const { http } = await app.newUser();
    const projectId = await app.newProject({});
    await http.get(`/projects/${projectId}/agents/v2`);
    await http.get('/nowhere/at/all');
    const { text } = await app.anonymous().get('/metrics');
    expect(text).to.contain(
      'turnkeep_http_requests_total{method="GET",route="/projects/:projectId/agents/v2",status="404"} 1',
    );
    expect(text).to.contain('process_cpu_seconds_total');
    expect(text).not.to.contain(projectId).and.not.to.contain('nowhere');
  });

  it('is not ready while the process stops, and asks clients to connect elsewhere', async () => {
    app.draining = true;
    try {
      const ready = await app.anonymous().get('/readyz');
      expect(ready.status).to.equal(503);
      expect(ready.json()).to.include({ status: 'unavailable' });
      expect(ready.headers.connection).to.equal('close');
      expect((await app.anonymous().get('/healthz')).status).to.equal(200);
    } finally {
      app.draining = false;
    }
  });
});

describe('with a Redis that is away', () => {
  const app = useInProcess({ env: { REDIS_URL: 'redis://127.0.0.1:1' } });

  it('a main is ready, and says degraded', async () => {
    const ready = await app.anonymous().get('/readyz');
    expect(ready.status).to.equal(200);
    expect(ready.json()).to.include({ status: 'degraded', redis: 'away' });
  });

  it('Bull Board says that it cannot, and not where Redis should be', async () => {
    const answer = await app.admin().get('/ops/queues/api/queues');
    expect(answer.status).to.equal(500);
    expect(answer.text).not.to.match(/127\.0\.0\.1|ECONN|ioredis|Stream/);
  });
});

describe('with a Postgres that is away', () => {
  it('is not ready: 503 within the bound, and requests are 503 too', async () => {
    const { InProcess } = await import('./support/in-process.js');
    const app = new InProcess();
    await app.start();
    try {
      await app.db.stop();
      const ready = await app.anonymous().get('/readyz');
      expect(ready.status).to.equal(503);
      expect(ready.json()).to.include({ status: 'unavailable', postgres: 'away' });
      const answer = await app.bearer('tk_x').get('/me');
      expect(answer.status, answer.text).to.equal(503);
    } finally {
      await app.stop();
    }
  });
});
