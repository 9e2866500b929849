import { randomBytes } from 'node:crypto';
import { hashOf, newSecret } from '@turnkeep/shared/access/secret';
import { openStore } from '@turnkeep/shared/attachments/open-store';
import { type Config, readConfig } from '@turnkeep/shared/config';
import type { Role } from '@turnkeep/shared/contract/access';
import { newId } from '@turnkeep/shared/contract/ids';
import { Database } from '@turnkeep/shared/db/database';
import { createLog } from '@turnkeep/shared/log';
import { HttpClient } from '../../../../test/support/http.js';
import { createDatabase, type TestDatabase } from '../../../../test/support/postgres.js';
import { createRedis, type TestRedis } from '../../../../test/support/redis.js';
import '../../../../test/support/suite.js';
import { createApp } from '../../src/app.js';
import { type Listening, listen } from '../../src/http/server.js';
import { startLive } from '../../src/live.js';
import { createMetrics } from '../../src/ops/metrics.js';

export const ADMIN_TOKEN = 'the-admin-token-of-the-tests';

/** What a test may set otherwise; what is left out is as `npm start` has it. */
export interface Options {
  env?: Record<string, string | undefined>;
}

/** The main's application in the test's own process, on a database and a Redis of its own. */
export class InProcess {
  draining = false;
  readonly #env: Record<string, string | undefined>;
  #started: { config: Config; test: TestDatabase; redis: TestRedis; db: Database; server: Listening } | undefined;
  #stops: (() => unknown)[] = [];

  constructor({ env = {} }: Options = {}) {
    this.#env = env;
  }

  async start(): Promise<void> {
    const [test, testRedis] = await Promise.all([createDatabase(), createRedis()]);
    const config = readConfig({
      DATABASE_URL: test.url,
      REDIS_URL: testRedis.url,
      ENCRYPTION_KEY: randomBytes(32).toString('base64'),
      ADMIN_TOKEN,
      LOG_LEVEL: 'silent',
      ...this.#env,
    });
    const log = createLog('main', config.logLevel);
    const db = new Database(config.databaseUrl, 10);
    const live = await startLive(config, log, db);
    const isDraining = () => this.draining;
    const attachmentStore = openStore(config.attachments);
    const app = createApp({ ...live.deps, config, log, db, attachmentStore, metrics: createMetrics(), isDraining });
    const server = await listen(app, '127.0.0.1', 0);
    this.#started = { config, test, redis: testRedis, db, server };
    this.#stops = [
      () => server.stopListening(),
      () => server.closed(1_000),
      () => live.stop(),
      () => db.stop(),
      () => testRedis.close(),
      () => test.drop(),
    ];
  }

  async stop(): Promise<void> {
    for (const stop of this.#stops) await stop();
  }

  get db(): Database {
    return this.#get().db;
  }

  get config(): Config {
    return this.#get().config;
  }

  /** Requests without any credential. */
  anonymous(): HttpClient {
    return new HttpClient(`http://127.0.0.1:${this.#get().server.port}`);
  }

  bearer(token: string): HttpClient {
    return this.anonymous().withHeaders({ authorization: `Bearer ${token}` });
  }

  admin(): HttpClient {
    return this.bearer(ADMIN_TOKEN);
  }

  /** A browser that was signed in with `cookie`, on a page of this server. */
  browser(cookie: string): HttpClient {
    return this.anonymous().withHeaders({ cookie: `turnkeep_session=${cookie}`, 'sec-fetch-site': 'same-origin' });
  }

  /** A new user with a token. */
  async newUser(): Promise<{ id: string; token: string; http: HttpClient }> {
    const id = newId();
    const token = newSecret('tk');
    await this.db.query('insert into users (id, email, name) values ($1, $2, $3)', [id, `${id}@example.org`, 'Name']);
    await this.db.query('insert into tokens (id, user_id, name, hash) values ($1, $2, $3, $4)', [
      newId(),
      id,
      'test',
      hashOf(token),
    ]);
    return { id, token, http: this.bearer(token) };
  }

  /** A new project with these members. */
  async newProject(members: Record<string, Role>): Promise<string> {
    const id = newId();
    await this.db.query('insert into projects (id, name) values ($1, $2)', [id, 'Project']);
    for (const [userId, role] of Object.entries(members))
      await this.db.query('insert into members (project_id, user_id, role) values ($1, $2, $3)', [id, userId, role]);
    return id;
  }

  #get() {
    if (this.#started === undefined) throw new Error('the application has not been started');
    return this.#started;
  }
}

/** One application for the suite in which this is called. */
export function useInProcess(options: Options = {}): InProcess {
  const app = new InProcess(options);
  before(() => app.start());
  after(() => app.stop());
  return app;
}

/** A configuration of the demo model with these tools. */
export function demoAgent(tools: object[] = []): object {
  return { name: 'Agent', config: { instructions: '', model: { provider: 'demo', model: 'demo' }, tools } };
}
