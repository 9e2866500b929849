import { hostname } from 'node:os';
import { openStore } from '@turnkeep/shared/attachments/open-store';
import type { Config } from '@turnkeep/shared/config';
import { newId } from '@turnkeep/shared/contract/ids';
import { Database } from '@turnkeep/shared/db/database';
import { waitForSchema } from '@turnkeep/shared/db/migrate';
import type { Log } from '@turnkeep/shared/log';
import { ChatLock } from '@turnkeep/shared/redis/chat-lock';
import { commandConnection, isReady, patientConnection } from '@turnkeep/shared/redis/connection';
import { EventStream } from '@turnkeep/shared/redis/event-stream';
import { channels } from '@turnkeep/shared/redis/keys';
import { PULSE_MS, SignalListener, Signals } from '@turnkeep/shared/redis/signals';
import { TurnQueue } from '@turnkeep/shared/redis/turn-queue';
import { collectDefaultMetrics, Registry } from 'prom-client';
import type { AdmissionPoint } from './admission.js';
import { Consumer } from './consumer.js';
import { Housekeeping } from './housekeeping.js';
import { Leases } from './leases.js';
import { Ops } from './ops.js';
import { Reaper } from './reaper.js';
import { createEgress } from './runtime/egress.js';
import { McpClients } from './runtime/mcp.js';
import type { TurnPoint } from './turn.js';

/** Connections to Postgres: turns mostly wait for models, so few serve many. */
const POOL_SIZE = 20;
/** How long the start waits for Redis, in ms; without one the worker starts all the same, and claims when Redis is there. */
const REDIS_START_MS = 2_000;

/** Where a test can hold or kill a worker. */
export type WorkerPoint = AdmissionPoint | TurnPoint;

export interface RunningWorker {
  workerId: string;
  port: number;
  /**
   * Takes no new work, lets turns finish within `graceMs`, interrupts what still runs then, and closes everything. Called
   * again, it interrupts at once. Resolves when nothing runs.
   */
  stop: (graceMs: number) => Promise<void>;
}

/**
 * Composes and starts a worker.
 * @param point called at named points of a turn; the product passes nothing
 * @throws where Postgres cannot be reached or has a schema that this release does not know
 */
export async function startWorker(
  config: Config,
  log: Log,
  point: (name: WorkerPoint) => Promise<void> | void = () => {},
): Promise<RunningWorker> {
  const workerId = `${hostname()}:${newId()}`;
  const db = new Database(config.databaseUrl, POOL_SIZE, (error) =>
    log.warn({ error }, 'a connection to Postgres broke'),
  );
  await waitForSchema(db);

  const onError = (error: Error) => log.debug({ error }, 'Redis');
  const redis = commandConnection(config.redisUrl, onError);
  const queueRedis = commandConnection(config.redisUrl, onError);
  const jobRedis = patientConnection(config.redisUrl, onError);
  const subscriber = patientConnection(config.redisUrl, onError, 3 * PULSE_MS);
  if (!(await isReady(redis, REDIS_START_MS))) log.warn('Redis is away; turns start when it is there');

  const { leaseMs, encryptionKey } = config;
  const signals = new Signals(redis);
  const events = new EventStream(redis);
  const turnQueue = new TurnQueue(queueRedis);
  const egress = createEgress({ allowPrivateNetwork: config.allowPrivateNetwork });
  const attachmentStore = openStore(config.attachments);
  const mcp = new McpClients({ fetch: egress.fetch });
  const leases = new Leases(db, workerId, leaseMs, log);
  const chatLock = new ChatLock(redis);
  const concurrency = config.workerConcurrency;
  const consumer = new Consumer(
    {
      db,
      chatLock,
      leases,
      workerId,
      leaseMs,
      events,
      signals,
      egress,
      mcp,
      attachmentStore,
      encryptionKey,
      log,
      point,
      turnQueue,
      concurrency,
    },
    jobRedis,
  );
  const reaper = new Reaper({ db, events, signals, turnQueue, leaseMs, log });
  const housekeeping = new Housekeeping(db, signals, config.retentionDays, attachmentStore, log);
  const listener = new SignalListener(subscriber);
  listener.listen(channels.worker(workerId), (signal) => {
    if (signal.kind === 'cancel') leases.cancel(signal.executionId);
  });

  let draining = false;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const ops = new Ops({ db, redis, registry, isDraining: () => draining });
  const port = await ops.start(config.workerHost, config.workerPort);
  leases.start();
  reaper.start();
  housekeeping.start();
  if (config.agentsEnabled) consumer.start();
  else log.info('AGENTS_ENABLED is false: nothing is claimed');

  async function close(graceMs: number): Promise<void> {
    const timer = setTimeout(() => leases.interruptAll(), graceMs);
    await consumer.drain();
    clearTimeout(timer);
    await Promise.all([leases.stop(), reaper.stop(), housekeeping.stop()]);
    listener.stop();
    await turnQueue.stop();
    for (const connection of [redis, queueRedis, jobRedis, subscriber]) connection.disconnect();
    await mcp.close();
    await egress.close();
    await ops.stop();
    await db.stop();
  }

  let closing: Promise<void> | null = null;
  return {
    workerId,
    port,
    stop: (graceMs) => {
      if (draining) leases.interruptAll();
      draining = true;
      closing ??= close(graceMs);
      return closing;
    },
  };
}
