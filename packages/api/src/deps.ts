import type { Config } from '@turnkeep/shared/config';
import type { Database } from '@turnkeep/shared/db/database';
import type { Log } from '@turnkeep/shared/log';
import type { Signals } from '@turnkeep/shared/redis/signals';
import type { TurnQueue } from '@turnkeep/shared/redis/turn-queue';
import type { Redis } from 'ioredis';
import type { Metrics } from './ops/metrics.js';

/** What `main.ts` composes and everything below is given. */
export interface Deps {
  config: Config;
  log: Log;
  db: Database;
  /** A command connection: never waits for a Redis that is away. */
  redis: Redis;
  signals: Signals;
  turnQueue: TurnQueue;
  metrics: Metrics;
  /** True from the first SIGTERM on. */
  isDraining(): boolean;
}
