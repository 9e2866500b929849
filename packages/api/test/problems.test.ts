import { PassThrough } from 'node:stream';
import { DatabaseAway } from '@turnkeep/shared/db/database';
import { createLog } from '@turnkeep/shared/log';
import { expect } from 'chai';
import Koa, { type Middleware } from 'koa';
import { HttpClient } from '../../../test/support/http.js';
import { expectProblem } from '../../../test/support/problem.js';
import type { State } from '../src/http/context.js';
import { problems } from '../src/http/problems.js';
import { type Listening, listen } from '../src/http/server.js';

describe('what a request throws (section 8)', () => {
  const routes: Record<string, Middleware<State>> = {
    '/sql': () => {
      throw Object.assign(new Error('select secret from users at 10.0.0.7:5432'), { code: '42601' });
    },
    '/away': () => {
      throw new DatabaseAway(new Error('connect ECONNREFUSED 10.0.0.7:5432'));
    },
    '/no-error': () => Promise.reject('a string'),
    '/late': async (ctx) => {
      const stream = new PassThrough();
      ctx.respond = false;
      ctx.res.writeHead(200, { 'content-type': 'text/event-stream' });
      stream.pipe(ctx.res, { end: false });
      await new Promise((resolve) => ctx.res.write(': hello\n\n', resolve));
      throw new Error('after the headers');
    },
  };
  let server: Listening;
  let http: HttpClient;

  before(async () => {
    const app = new Koa<State>();
    app.silent = true;
    app.use(problems(createLog('main', 'silent')));
    app.use((ctx, next) => routes[ctx.path]?.(ctx, next) ?? next());
    server = await listen(app, '127.0.0.1', 0);
    http = new HttpClient(`http://127.0.0.1:${server.port}`);
  });
  after(async () => {
    server.stopListening();
    await server.closed(1_000);
  });

  it('is an internal error that says nothing of the inside', async () => {
    for (const path of ['/sql', '/no-error']) {
      const answer = await http.get(path);
      expectProblem(answer, 500, 'internal');
      expect(answer.text).not.to.match(/secret|10\.0\.0\.7|42601|string/);
    }
  });

  it('is 503 with Retry-After where Postgres is away', async () => {
    const answer = await http.get('/away');
    expectProblem(answer, 503, 'unavailable');
    expect(Number(answer.headers['retry-after'])).to.be.within(1, 30);
    expect(answer.text).not.to.contain('10.0.0.7');
  });

  it('ends a stream whose headers are out', async () => {
    const answer = await http.get('/late');
    expect(answer.status).to.equal(200);
    expect(answer.text).to.equal(': hello\n\n');
  });
});
