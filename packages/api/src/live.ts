import type { Config } from '@turnkeep/shared/config';
import { newId } from '@turnkeep/shared/contract/ids';
import type { Database } from '@turnkeep/shared/db/database';
import type { Log } from '@turnkeep/shared/log';
import { ChatLock } from '@turnkeep/shared/redis/chat-lock';
import { commandConnection, isReady, patientConnection } from '@turnkeep/shared/redis/connection';
import { EventStream } from '@turnkeep/shared/redis/event-stream';
import { PULSE_MS, SignalListener, Signals } from '@turnkeep/shared/redis/signals';
import { TurnQueue } from '@turnkeep/shared/redis/turn-queue';
import type { ChatDeps } from './deps.js';
import { Notifications } from './sse/notifications.js';
import { BLOCK_MS, StreamHub } from './sse/stream-hub.js';
import { StreamPlaces } from './sse/stream-places.js';
import { Streams } from './sse/streams.js';
import { Waiting } from './sse/waiting.js';

/** How long the start waits for Redis, in ms. Without one a main serves all the same, degraded. */
const REDIS_START_MS = 2_000;
/** Signals may be lost for this long before a broken connection is noticed, in ms. */
const LOST_MS = 3 * PULSE_MS;

export type LiveDeps = Pick<
  ChatDeps,
  'redis' | 'signals' | 'turnQueue' | 'chatLock' | 'events' | 'hub' | 'waiting' | 'streams' | 'notifications'
>;

/** Everything of a main that goes through Redis and has a life of its own. `stop` closes it, streams last. */
export async function startLive(
  config: Config,
  log: Log,
  db: Database,
): Promise<{ deps: LiveDeps; stop: () => Promise<void> }> {
  const onError = oncePerOutage(log);
  const redis = commandConnection(config.redisUrl, onError);
  const queueRedis = commandConnection(config.redisUrl, onError);
  const reader = patientConnection(config.redisUrl, onError, 2 * BLOCK_MS);
  const subscriber = patientConnection(config.redisUrl, onError, LOST_MS);
  if (!(await isReady(redis, REDIS_START_MS))) log.warn('Redis is away; live events come late until it is there');

  const mainId = newId();
  const listener = new SignalListener(subscriber);
  const waiting = new Waiting(db, listener);
  const streams = new Streams(db, waiting, new StreamPlaces(redis, mainId, config.limits.maxStreams), log);
  const notifications = new Notifications(db, listener);
  const hub = new StreamHub(reader, redis, mainId);
  const turnQueue = new TurnQueue(queueRedis);
  afterOutages(subscriber, log, async (since) => {
    await streams.look();
    await notifications.announceChangesSince(since);
  });
  hub.start();
  streams.start();
  return {
    deps: {
      redis,
      signals: new Signals(redis),
      turnQueue,
      chatLock: new ChatLock(redis),
      events: new EventStream(redis),
      hub,
      waiting,
      streams,
      notifications,
    },
    stop: async () => {
      await streams.stop();
      await hub.stop();
      listener.stop();
      await turnQueue.stop();
      for (const connection of [redis, queueRedis, subscriber]) connection.disconnect();
    },
  };
}

/** Whatever was signalled while the subscriber was away is made up for from Postgres, as soon as it is back. */
function afterOutages(
  subscriber: ReturnType<typeof patientConnection>,
  log: Log,
  makeUp: (since: Date) => Promise<void>,
): void {
  let lostAt: Date | null = null;
  subscriber.on('close', () => {
    lostAt ??= new Date(Date.now() - LOST_MS);
  });
  subscriber.on('ready', () => {
    if (!lostAt) return;
    const since = lostAt;
    lostAt = null;
    makeUp(since).catch((error: unknown) => log.warn({ error }, 'signals of an outage could not be made up for'));
  });
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
