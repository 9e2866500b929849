import { setTimeout as pause } from 'node:timers/promises';
import { type Config, ConfigError, readConfig } from '@turnkeep/shared/config';
import { Database, DatabaseAway } from '@turnkeep/shared/db/database';
import { assertSchema } from '@turnkeep/shared/db/migrate';
import { createLog, type Log } from '@turnkeep/shared/log';
import { commandConnection } from '@turnkeep/shared/redis/connection';
import { Signals } from '@turnkeep/shared/redis/signals';
import { TurnQueue } from '@turnkeep/shared/redis/turn-queue';
import { createApp } from './app.js';
import { listen } from './http/server.js';
import { createMetrics } from './ops/metrics.js';

/** Connections to Postgres that one main holds at most. */
const POSTGRES_CONNECTIONS = 20;
/** How long a main waits at its start for a Postgres that is away, in ms. */
const START_MS = 10_000;
/** How long, after the streams have ended, the last answers may take, in ms. */
const LAST_ANSWERS_MS = 5_000;

async function main(): Promise<void> {
  const config = readConfig(process.env);
  const log = createLog('main', config.logLevel);
  process.on('unhandledRejection', (error) => {
    log.fatal({ error }, 'unhandled rejection');
    process.exit(1);
  });
  process.on('uncaughtException', (error) => {
    log.fatal({ error }, 'uncaught exception');
    process.exit(1);
  });
  const stopping = onStopSignal(log);
  const db = new Database(config.databaseUrl, POSTGRES_CONNECTIONS, (error) => log.warn({ error }, 'postgres'));
  await schemaIsKnown(db);
  await serve(config, log, db, stopping);
}

/** Puts a main together, and takes it apart again at SIGTERM. */
async function serve(config: Config, log: Log, db: Database, stopping: Stopping): Promise<void> {
  const onRedisError = oncePerOutage(log);
  const redis = commandConnection(config.redisUrl, onRedisError);
  const turnRedis = commandConnection(config.redisUrl, onRedisError);
  const turnQueue = new TurnQueue(turnRedis);
  const app = createApp({
    config,
    log,
    db,
    redis,
    signals: new Signals(redis),
    turnQueue,
    metrics: createMetrics(),
    isDraining: () => stopping.asked,
  });
  const server = await listen(app, config.host, config.port);
  log.info({ port: server.port, host: config.host }, 'listening');

  stopping.stop = async () => {
    server.stopListening();
    await server.closed(LAST_ANSWERS_MS);
    await turnQueue.stop();
    redis.disconnect();
    turnRedis.disconnect();
    await db.stop();
  };
}

/** Waits a while for Postgres, then throws where its schema is none that this release can serve. */
async function schemaIsKnown(db: Database): Promise<void> {
  const start = performance.now();
  for (;;) {
    try {
      return await assertSchema(db);
    } catch (error) {
      if (!(error instanceof DatabaseAway)) throw error;
      if (performance.now() - start > START_MS) throw new Error('DATABASE_URL: Postgres cannot be reached');
      await pause(500);
    }
  }
}

interface Stopping {
  asked: boolean;
  /** What to do at the first signal; a process that still starts has nothing to stop. */
  stop: () => Promise<void>;
}

/** The first SIGTERM or SIGINT stops the process in order and with exit code 0; a second one at once. */
function onStopSignal(log: Log): Stopping {
  const stopping: Stopping = { asked: false, stop: async () => {} };
  const onSignal = (signal: string) => {
    if (stopping.asked) process.exit(0);
    stopping.asked = true;
    log.info({ signal }, 'stopping');
    stopping.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        log.fatal({ error }, 'stopping failed');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  return stopping;
}

/** Redis connections try again several times a second: the log hears of an outage once a minute. */
function oncePerOutage(log: Log): (error: Error) => void {
  let last = -Infinity;
  return (error) => {
    if (performance.now() - last < 60_000) return;
    last = performance.now();
    log.warn({ error }, 'redis');
  };
}

main().catch((error: unknown) => {
  const { message } = error instanceof Error ? error : new Error(String(error));
  console.error(error instanceof ConfigError ? message : `The main did not start: ${message}`);
  process.exit(1);
});
