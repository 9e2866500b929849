import path from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { Cluster } from '../test/support/cluster.js';
import type { BareSetup } from './bare/setup.js';
import { type PreparedTurn, prepareTurn, recordTurn } from './bare/turn-scripts.js';
import { type Child, startChild } from './child.js';
import { LoadClient } from './load/client.js';

/** Everything that is measured, running. Each side has one main and at most one worker. */
export interface Sides {
  /** A main and a worker. */
  product: LoadClient;
  /** A bare main and a bare worker. */
  bare: LoadClient;
  /** A main of the product without a worker, on the database of the bare side: what it accepts stays in the queue. */
  accepting: LoadClient;
  /** The statements of a turn, and connections for what is measured without a process around it. */
  setup: BareSetup;
  scripts: PreparedTurn;
  pool: pg.Pool;
  redis: Redis;
  stop(): Promise<void>;
}

/** Executions that a worker runs at once, on both sides. */
const CONCURRENCY = 200;

/**
 * Starts both sides on the Postgres and the Redis that the environment names, each with databases of its own.
 * @param profiles a folder for CPU profiles of the product's processes
 */
export async function startSides(profiles?: string): Promise<Sides> {
  const env = {
    NODE_ENV: 'production',
    MAX_STREAMS: '1000',
    WORKER_CONCURRENCY: String(CONCURRENCY),
    ...(profiles ? profiling(profiles) : {}),
  };
  const model = await startChild('./model/server.ts');
  const modelUrl = `http://127.0.0.1:${model.port}/v1`;
  const product = await new Cluster({ mains: 1, workers: 1, env }).start();
  const accepting = await new Cluster({ mains: 1, workers: 0, env }).start();
  const setup = { databaseUrl: accepting.db.url, redisUrl: accepting.redis.url, modelUrl, concurrency: CONCURRENCY };
  const chat = await newChat(accepting, modelUrl);
  const bareSetup: BareSetup = { ...setup, scripts: await recordTurn(setup.databaseUrl, chat) };
  const bareMain = await startChild('./bare/main.ts', bareSetup);
  const bareWorker = await startChild('./bare/worker.ts', bareSetup);
  const productChat = await newChat(product, modelUrl);
  const clients = {
    product: new LoadClient(portOf(product), productChat.path(), productChat.user.token),
    bare: new LoadClient(bareMain.port, chat.path(), chat.user.token),
    accepting: new LoadClient(portOf(accepting), chat.path(), chat.user.token),
  };
  const pool = new pg.Pool({ connectionString: setup.databaseUrl, max: 4 });
  const redis = new Redis(setup.redisUrl);
  return {
    ...clients,
    setup: bareSetup,
    scripts: prepareTurn(bareSetup.scripts),
    pool,
    redis,
    stop: async () => {
      for (const client of Object.values(clients)) client.stop();
      await stopAll([bareMain, bareWorker, model]);
      await pool.end();
      redis.disconnect();
      await Promise.all([product.stop(), accepting.stop()]);
    },
  };
}

function profiling(folder: string): Record<string, string> {
  const module = new URL('./profile.mjs', import.meta.url).href;
  return { NODE_OPTIONS: `--import=${module}`, BENCH_PROFILES: path.resolve(folder) };
}

async function stopAll(children: Child[]): Promise<void> {
  await Promise.all(children.map((child) => child.stop()));
}

function newChat(cluster: Cluster, modelUrl: string) {
  return cluster.newChat({ model: { provider: 'openai-compatible', model: 'bench', baseUrl: modelUrl } });
}

function portOf(cluster: Cluster): number {
  return Number(new URL(cluster.mains[0]?.baseUrl ?? '').port);
}
