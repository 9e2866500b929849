import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { type OwnRedis, startRedis } from '../../test/support/redis.js';
import type { Release } from '../product/release.js';
import { Model } from './model.js';
import { type People, settle } from './people.js';
import { Postgres } from './postgres.js';
import { Slot } from './slot.js';
import { Tools } from './tools.js';
import { Wire } from './wire.js';

export const LEASE_MS = 2_000;
export const GRACE_MS = 1_500;
const MAINS = 2;
const WORKERS = 3;
const DATABASE = 'chaos';

/** Everything that a run plays on: the product's processes, what they stand on, and the people who use them. */
export interface Stage {
  readonly postgres: Postgres;
  readonly redis: RedisServer;
  readonly model: Model;
  readonly tools: Tools;
  /** The ways from all workers to the model and to the tools. */
  readonly outside: { readonly model: Wire; readonly tools: Wire };
  readonly mains: readonly Slot[];
  readonly workers: readonly Slot[];
  readonly people: People;
  /** Asks the database directly, past all wires. */
  query<Row extends object>(sql: string, values?: unknown[]): Promise<Row[]>;
  stop(): Promise<void>;
}

/** A Redis of the run's own, which knows whether it is up. */
export class RedisServer {
  #state: 'up' | 'paused' | 'down' = 'up';

  constructor(readonly server: OwnRedis) {}

  pause(): void {
    this.server.pause();
    this.#state = 'paused';
  }

  async kill(): Promise<void> {
    await this.server.kill();
    this.#state = 'down';
  }

  async restart(data: 'keep' | 'empty'): Promise<void> {
    await this.server.restart(data);
    this.#state = 'up';
  }

  async heal(): Promise<void> {
    if (this.#state === 'paused') this.server.resume();
    if (this.#state === 'down') await this.server.restart('keep');
    this.#state = 'up';
  }
}

/** Builds the stage in `folder`; `release` says which build of the product plays. */
export async function startStage(folder: string, release: Release): Promise<Stage> {
  const postgres = new Postgres(folder);
  const [redis, model, tools] = await Promise.all([
    startRedis(),
    new Model().start(),
    new Tools().start(),
    postgres.start(),
  ]);
  const outside = { model: await new Wire(model.url).start(), tools: await new Wire(tools.url).start() };
  await makeDatabase(postgres, release);
  const adminToken = randomBytes(24).toString('base64url');
  const slots = await openSlots({
    folder,
    release,
    adminToken,
    postgresUrl: postgres.url(DATABASE),
    redisUrl: redis.url,
  });
  const pool = new pg.Pool({ connectionString: postgres.url(DATABASE), max: 3 });
  pool.on('error', () => {});
  const mains = slots.filter(({ kind }) => kind === 'main');
  const stage = {
    postgres,
    redis: new RedisServer(redis),
    model,
    tools,
    outside,
    mains,
    workers: slots.filter(({ kind }) => kind === 'worker'),
    query: async <Row extends object>(sql: string, values: unknown[] = []) => (await pool.query<Row>(sql, values)).rows,
    stop: async () => {
      await Promise.all(slots.map((slot) => slot.close()));
      await Promise.all([
        outside.model.stop(),
        outside.tools.stop(),
        model.stop(),
        tools.stop(),
        pool.end().catch(() => {}),
      ]);
      await Promise.all([postgres.stop(), redis.stop()]);
    },
  };
  const [first] = mains;
  try {
    const people = await settle(first?.baseUrl ?? '', adminToken, outside.model.url, outside.tools.url);
    return { ...stage, people };
  } catch (error) {
    await stage.stop();
    throw error;
  }
}

async function makeDatabase(postgres: Postgres, release: Release): Promise<void> {
  const client = new pg.Client({ connectionString: postgres.url('postgres') });
  await client.connect();
  await client.query(`create database ${DATABASE}`);
  await client.end();
  const env = { PATH: process.env.PATH, DATABASE_URL: postgres.url(DATABASE), LOG_LEVEL: 'warn' };
  await promisify(execFile)(process.execPath, [release.migrate], { env });
}

interface Opening {
  readonly folder: string;
  readonly release: Release;
  readonly adminToken: string;
  readonly postgresUrl: string;
  readonly redisUrl: string;
}

async function openSlots({ folder, release, adminToken, postgresUrl, redisUrl }: Opening): Promise<Slot[]> {
  const env = {
    PATH: process.env.PATH ?? '',
    NODE_ENV: 'production',
    PORT: '0',
    WORKER_PORT: '0',
    ENCRYPTION_KEY: randomBytes(32).toString('base64'),
    ADMIN_TOKEN: adminToken,
    ALLOW_PRIVATE_NETWORK: 'true',
    LEASE_MS: String(LEASE_MS),
    SHUTDOWN_GRACE_MS: String(GRACE_MS),
    MAX_STREAMS: '1000',
  };
  const common = { env, postgresUrl, redisUrl, logs: join(folder, 'logs') };
  const mains = Array.from({ length: MAINS }, (_, index) => ({
    kind: 'main' as const,
    name: `main ${index}`,
    entry: release.main,
  }));
  const workers = Array.from({ length: WORKERS }, (_, index) => ({
    kind: 'worker' as const,
    name: `worker ${index}`,
    entry: release.worker,
  }));
  const slots = [...mains, ...workers].map((which) => new Slot({ ...common, ...which }));
  await Promise.all(slots.map((slot) => slot.open()));
  await Promise.all(slots.map((slot) => slot.start()));
  return slots;
}
