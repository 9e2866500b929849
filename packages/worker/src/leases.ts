import { extendLeases } from '@turnkeep/shared/chat/lease';
import type { Database } from '@turnkeep/shared/db/database';
import type { Log } from '@turnkeep/shared/log';
import type { RunningTurn } from './running-turn.js';

/** The longest time between two heartbeats, in ms: with Redis away, Stop reaches a turn by the next one. */
const MAX_BEAT_MS = 1_000;

/**
 * The executions that this worker runs, and the heartbeat that keeps them (contract, section 9.6): one statement prolongs
 * all leases by Postgres' clock and reads who was asked to stop. By its own monotonic clock the worker knows when a lease
 * is over, also where Postgres does not answer, and stops that turn.
 */
export class Leases {
  readonly #db: Database;
  readonly #workerId: string;
  readonly #leaseMs: number;
  readonly #log: Log;
  readonly #turns = new Map<string, RunningTurn>();
  #timer: NodeJS.Timeout | null = null;
  #beating: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(db: Database, workerId: string, leaseMs: number, log: Log) {
    this.#db = db;
    this.#workerId = workerId;
    this.#leaseMs = leaseMs;
    this.#log = log;
  }

  start(): void {
    this.#schedule();
  }

  /** Ends the heartbeat. Call it when no turn runs any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer) clearTimeout(this.#timer);
    await this.#beating;
  }

  /** Registers the cancel handle of an execution. */
  register(turn: RunningTurn): void {
    this.#turns.set(turn.owner.executionId, turn);
  }

  unregister(turn: RunningTurn): void {
    this.#turns.delete(turn.owner.executionId);
  }

  /** Stops one of this worker's executions; one that it does not run is not touched. */
  cancel(executionId: string): void {
    this.#turns.get(executionId)?.stop('cancelled');
  }

  /** Interrupts all that runs here: the grace of a shutdown is over. */
  interruptAll(): void {
    for (const turn of this.#turns.values()) turn.stop('interrupted');
  }

  #schedule(): void {
    if (this.#stopped) return;
    const ms = Math.min(MAX_BEAT_MS, this.#leaseMs / 4);
    this.#timer = setTimeout(() => {
      this.#beating = this.#beat().finally(() => this.#schedule());
    }, ms);
    this.#stopOverdue();
  }

  async #beat(): Promise<void> {
    const turns = [...this.#turns.values()];
    if (turns.length === 0) return;
    const endsAt = performance.now() + this.#leaseMs;
    // A Postgres that does not answer must not hold up the look at the clock.
    const overdue = setInterval(() => this.#stopOverdue(), Math.min(MAX_BEAT_MS, this.#leaseMs / 4));
    try {
      const ids = turns.map((turn) => turn.owner.executionId);
      const rows = await extendLeases(this.#db, this.#workerId, ids, this.#leaseMs);
      const owned = new Map(rows.map((row) => [row.id, row]));
      for (const turn of turns) {
        const row = owned.get(turn.owner.executionId);
        if (row) turn.prolong(endsAt);
        else if (this.#turns.has(turn.owner.executionId)) turn.stop('lost');
        if (row?.cancelRequested) turn.stop('cancelled');
      }
    } catch (error) {
      this.#log.warn({ error, turns: turns.length }, 'the heartbeat did not reach Postgres');
    } finally {
      clearInterval(overdue);
    }
  }

  #stopOverdue(): void {
    for (const turn of this.#turns.values()) if (turn.leaseLeftMs() <= 0) turn.stop('lost');
  }
}
