import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { eventually } from './deadline.js';
import { required } from './environment.js';

const DATABASES = 256;

/** A database number of the shared Redis server, flushed, for one test file. */
export interface TestRedis {
  readonly url: string;
  /** A connection for looking and breaking. */
  readonly client: Redis;
  close(): Promise<void>;
}

/** Takes the next database number; number 0 keeps the count, so that test processes beside this one get others. */
export async function createRedis(): Promise<TestRedis> {
  const counter = new Redis(required('TEST_REDIS_URL'));
  const taken = await counter.incr('turnkeep-test:databases');
  await counter.quit();
  const url = new URL(required('TEST_REDIS_URL'));
  url.pathname = `/${1 + (taken % (DATABASES - 1))}`;
  const client = new Redis(url.href);
  await client.flushdb();
  return {
    url: url.href,
    client,
    close: async () => {
      await client.flushdb();
      await client.quit();
    },
  };
}

/** A Redis server of a test's own, to be broken. */
export interface OwnRedis {
  readonly url: string;
  /** Kills it at once; what was not saved is gone. */
  kill(): Promise<void>;
  /** Freezes it: connections stay, nothing answers. */
  pause(): void;
  resume(): void;
  /** Starts it again on the same port, with the data of before (`keep`) or empty. Resolves when it answers. */
  restart(data: 'keep' | 'empty'): Promise<void>;
  /** Ends it for good and removes its files. */
  stop(): Promise<void>;
}

/** Starts a Redis server on a free port. It appends each write to disk, so that `restart('keep')` finds it all. */
export async function startRedis(): Promise<OwnRedis> {
  const directory = await mkdtemp(join(tmpdir(), 'turnkeep-redis-'));
  const port = await freePort();
  let child = await run(port, directory);
  const kill = async () => {
    const gone = exited(child);
    child.kill('SIGKILL');
    await gone;
  };
  return {
    url: `redis://127.0.0.1:${port}/0`,
    kill,
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    restart: async (data) => {
      await kill();
      if (data === 'empty') await rm(join(directory, 'appendonlydir'), { recursive: true, force: true });
      child = await run(port, directory);
    },
    stop: async () => {
      await kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function run(port: number, directory: string): Promise<ChildProcess> {
  const libraries = process.env.TURNKEEP_REDIS_LD_LIBRARY_PATH;
  const child = spawn(
    required('TURNKEEP_REDIS_SERVER'),
    ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory, '--save', '', '--appendonly', 'yes'],
    { stdio: 'ignore', env: { ...process.env, ...(libraries ? { LD_LIBRARY_PATH: libraries } : {}) } },
  );
  const probe = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: () => 50 });
  probe.on('error', () => {});
  try {
    await eventually(`Redis does not answer on port ${port}`, async () => (await probe.ping()) === 'PONG');
  } finally {
    probe.disconnect();
  }
  return child;
}

function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => child.once('exit', () => resolve()));
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
