import { unservedSessions } from '@turnkeep/shared/chat/lease';
import { DatabaseAway } from '@turnkeep/shared/db/database';
import type { Log } from '@turnkeep/shared/log';
import { TURN_QUEUE, TURN_QUEUE_PREFIX, type TurnJob, type TurnQueue } from '@turnkeep/shared/redis/turn-queue';
import { type Job, UnrecoverableError, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { type AdmissionDeps, admit } from './admission.js';
import { type Ended, Turn, type TurnDeps } from './turn.js';

/** How often a worker looks for sessions that nobody serves, and how long they have gone unserved by then, in ms. */
const SWEEP_MS = 500;
const UNSERVED_MS = 700;

export interface ConsumerDeps extends AdmissionDeps, Omit<TurnDeps, 'point'> {
  point: AdmissionDeps['point'] & TurnDeps['point'];
  turnQueue: TurnQueue;
  concurrency: number;
  log: Log;
}

/**
 * Starts turns: one for each job that BullMQ hands over, and one for each session that a sweep of Postgres finds unserved,
 * whatever happened to its job (contract, section 9.3). Both go through the same admission, and share the slots.
 */
export class Consumer {
  readonly #deps: ConsumerDeps;
  readonly #redis: Redis;
  readonly #running = new Set<Promise<unknown>>();
  #worker: Worker<TurnJob> | null = null;
  #sweepTimer: NodeJS.Timeout | null = null;
  #sweeping: Promise<void> = Promise.resolve();
  #draining = false;

  /** @param redis a patient connection of its own */
  constructor(deps: ConsumerDeps, redis: Redis) {
    this.#deps = deps;
    this.#redis = redis;
  }

  start(): void {
    this.#worker = new Worker<TurnJob>(TURN_QUEUE, (job) => this.#serveJob(job), {
      connection: this.#redis,
      prefix: TURN_QUEUE_PREFIX,
      concurrency: this.#deps.concurrency,
      skipVersionCheck: true,
    });
    this.#worker.on('error', (error) => this.#deps.log.debug({ error }, 'BullMQ'));
    this.#scheduleSweep();
  }

  /** Takes no new work; resolves when the turns that run have ended. */
  async drain(): Promise<void> {
    this.#draining = true;
    if (this.#sweepTimer) clearTimeout(this.#sweepTimer);
    // Not waited for yet: close() waits for the jobs, whose turns are waited for below.
    const closed = this.#worker?.close().catch(() => {});
    await this.#sweeping;
    while (this.#running.size > 0) await Promise.allSettled([...this.#running]);
    await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, 2_000))]);
  }

  async #serveJob({ data }: Job<TurnJob>): Promise<{ executionId: string; status: string } | null> {
    // A draining worker may still be handed a job that it had asked for: another worker's sweep takes the session.
    if (this.#draining || this.#running.size >= this.#deps.concurrency) return null;
    const served = await this.#track(this.#serve(data));
    if (served?.settled?.error) throw new UnrecoverableError(served.settled.error.code);
    return served && { executionId: served.executionId, status: served.settled?.status ?? 'moved on' };
  }

  async #track<T>(work: Promise<T>): Promise<T> {
    this.#running.add(work);
    try {
      return await work;
    } finally {
      this.#running.delete(work);
    }
  }

  /** Admits and runs one turn of a session, if it has one to start, and wakes whoever starts the next. */
  async #serve(job: TurnJob): Promise<{ executionId: string; settled: Ended | null } | null> {
    const deps = this.#deps;
    let turn: Turn | null = null;
    const running = await admit(deps, job.sessionId, (admitted) => {
      turn = new Turn(deps, admitted);
      turn.announce();
    }).catch((error: unknown) => this.#notAdmitted(error, job));
    if (!running || !turn) return null;
    const { executionId } = running.owner;
    try {
      const settled = await (turn as Turn).run();
      if (settled?.ready) await deps.turnQueue.wake(job);
      return { executionId, settled };
    } catch (error) {
      // Its lease runs out, and a reaper finalises it.
      deps.log.error({ error, executionId, sessionId: job.sessionId }, 'a turn could not be settled');
      return { executionId, settled: null };
    } finally {
      deps.leases.unregister(running);
    }
  }

  #notAdmitted(error: unknown, { sessionId }: TurnJob): null {
    const level = error instanceof DatabaseAway ? 'warn' : 'info';
    this.#deps.log[level]({ error, sessionId }, 'a turn could not be admitted now');
    return null;
  }

  #scheduleSweep(): void {
    if (this.#draining) return;
    this.#sweepTimer = setTimeout(
      () => {
        this.#sweeping = this.#sweep().finally(() => this.#scheduleSweep());
      },
      SWEEP_MS * (0.8 + 0.4 * Math.random()),
    );
  }

  async #sweep(): Promise<void> {
    const free = this.#deps.concurrency - this.#running.size;
    if (free <= 0) return;
    try {
      for (const job of await unservedSessions(this.#deps.db, UNSERVED_MS, free)) {
        if (this.#draining || this.#running.size >= this.#deps.concurrency) return;
        void this.#track(this.#serve(job));
      }
    } catch (error) {
      this.#deps.log.warn({ error }, 'the sweep did not reach Postgres');
    }
  }
}
