import { Redlock } from '@sesamecare-oss/redlock';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { type Ids, runOn } from '../bare/script.js';
import { newIds } from '../bare/turn-scripts.js';
import { nowMs } from '../clock.js';
import type { Sides } from '../sides.js';

const PREFIX = '{bench}';

/** The bare parts of a dispatch, each by itself, one after the other. */
export interface DispatchParts {
  /** Runs each part once; answers how long all of them took together, in ms. */
  once(): Promise<number>;
  stop(): Promise<void>;
}

/** Prepares BullMQ add→process, Redlock acquire and release, the claim's statements, and XADD→XREAD. */
export async function startDispatchParts({ pool, setup, scripts }: Sides): Promise<DispatchParts> {
  const redis = new Redis(setup.redisUrl);
  const [reader, jobs] = [new Redis(setup.redisUrl), new Redis(setup.redisUrl, { maxRetriesPerRequest: null })];
  const redlock = new Redlock([redis]);
  const queue = new Queue('dispatch', { connection: redis, prefix: PREFIX });
  let onJob: (at: number) => void = () => {};
  const worker = new Worker('dispatch', async () => onJob(nowMs()), { connection: jobs, prefix: PREFIX });
  await worker.waitUntilReady();

  const job = async () => {
    const start = nowMs();
    const processed = new Promise<number>((resolve) => {
      onJob = resolve;
    });
    await queue.add('turn', {}, { removeOnComplete: true });
    return (await processed) - start;
  };
  const lock = () =>
    timed(async () => {
      const held = await redlock.acquire([`${PREFIX}:lock`], 1_500);
      await held.release();
    });
  const claim = async (ids: Ids) => {
    await runOn(pool, scripts.accept, ids);
    const ms = await timed(() => runOn(pool, scripts.claim, ids));
    // So that no execution is left running.
    await runOn(pool, scripts.settle, ids);
    return ms;
  };
  const stream = async () => {
    const heard = reader.xread('BLOCK', 5_000, 'STREAMS', `${PREFIX}:stream`, '$');
    await redis.ping();
    return timed(async () => {
      void redis.xadd(`${PREFIX}:stream`, 'MAXLEN', '~', 100, '*', 'e', 'x');
      await heard;
    });
  };
  return {
    once: async () => (await job()) + (await lock()) + (await claim(newIds('say 3 every 0'))) + (await stream()),
    stop: async () => {
      await worker.close();
      await queue.close();
      for (const connection of [redis, reader, jobs]) connection.disconnect();
    },
  };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = nowMs();
  await work();
  return nowMs() - start;
}
