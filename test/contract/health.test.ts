import { expect } from 'chai';
import { useCluster } from '../support/suite.js';

describe('health and metrics (section 1)', () => {
  const cluster = useCluster({ mains: 1, workers: 1 });
  const everybody = () => [...cluster.mains, ...cluster.workers];
  const get = async (baseUrl: string, path: string) => cluster.anonymous().at(baseUrl).get(path);

  it('answers /healthz, /readyz and /metrics in both processes without a token', async () => {
    for (const process of everybody()) {
      for (const path of ['/healthz', '/readyz']) {
        const response = await get(process.baseUrl, path);
        expect(response.status, `${process.name} ${path}: ${response.text}`).to.equal(200);
      }
      const metrics = await get(process.baseUrl, '/metrics');
      expect(metrics.status).to.equal(200);
      expect(metrics.text).to.match(/^# TYPE \w+ (counter|gauge|histogram)/m);
    }
  });

  it('tells nothing of the inside in them', async () => {
    const database = new URL(cluster.db.url);
    for (const process of everybody()) {
      for (const path of ['/healthz', '/readyz', '/metrics']) {
        const { text } = await get(process.baseUrl, path);
        expect(text)
          .not.to.contain(database.password || 'postgres://')
          .and.not.to.contain(database.pathname);
      }
    }
  });

  it('serves the page of the web client without a token', async () => {
    const page = await get(cluster.mains[0]?.baseUrl ?? '', '/');
    expect(page.status).to.equal(200);
    expect(page.headers['content-type']).to.match(/^text\/html/);
    expect(page.headers['content-security-policy']).to.be.a('string');
    expect(page.text).not.to.match(/(src|href)="https?:/);
  });

  it('logs JSON, one object a line, with the port in the start line, and no message text', async () => {
    const chat = await cluster.newChat();
    const words = 'the quick brown fox of this very test';
    await chat.turn(words);
    for (const process of everybody()) {
      expect(process.log.length, `${process.name} logs JSON only:\n${process.tail()}`).to.equal(process.output.length);
      expect(process.log.find((line) => line.msg === 'listening')?.port).to.be.a('number');
      for (const secret of [words, chat.user.token, cluster.adminToken]) {
        expect(process.output.join('\n').includes(secret), process.name).to.equal(false);
      }
    }
  });
});
