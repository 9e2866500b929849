import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';

/** The BullMQ queue whose jobs wake workers. The truth is in Postgres: losing every job loses nothing. */
export const TURN_QUEUE = 'turns';
export const TURN_QUEUE_PREFIX = '{tk}';

/** How long closing may wait for a Redis that does not answer, in ms. */
const CLOSE_MS = 2_000;

/** A job's data: enough for a person at Bull Board to know what it is, nothing of a message's text. */
export interface TurnJob {
  sessionId: string;
  agentId: string;
}

/** Wakes workers for sessions that may have something to start. */
export class TurnQueue {
  readonly queue: Queue<TurnJob>;
  readonly #redis: Redis;

  /** @param redis a command connection of its own */
  constructor(redis: Redis) {
    this.#redis = redis;
    this.queue = new Queue<TurnJob>(TURN_QUEUE, {
      connection: redis,
      prefix: TURN_QUEUE_PREFIX,
      skipWaitingForReady: true,
      skipVersionCheck: true,
    });
    this.queue.on('error', () => {});
  }

  /**
   * Makes sure that one job of the session waits, or will after the active one. Never throws and loses nothing by failing:
   * workers sweep Postgres for sessions that nobody serves.
   */
  async wake(job: TurnJob): Promise<void> {
    if (this.#redis.status !== 'ready') return;
    await this.queue
      .add('turn', job, {
        deduplication: { id: job.sessionId, keepLastIfActive: true },
        removeOnComplete: { count: 1_000, age: 86_400 },
        removeOnFail: { count: 1_000, age: 604_800 },
      })
      .catch(() => {});
  }

  /** Closes the queue; with Redis away there is nobody to say goodbye to. The caller closes the connection. */
  async stop(): Promise<void> {
    if (this.#redis.status !== 'ready') return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CLOSE_MS);
    });
    await Promise.race([this.queue.close().catch(() => {}), late]);
    clearTimeout(timer);
  }
}
