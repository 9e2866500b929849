import { INTERRUPTED, interruptExpired, SEALED_N } from '@turnkeep/shared/chat/interrupt';
import { expiredExecutions } from '@turnkeep/shared/chat/lease';
import type { ExecutionEvent } from '@turnkeep/shared/contract/events';
import type { Database } from '@turnkeep/shared/db/database';
import type { Log } from '@turnkeep/shared/log';
import type { EventStream } from '@turnkeep/shared/redis/event-stream';
import type { Signals } from '@turnkeep/shared/redis/signals';
import type { TurnQueue } from '@turnkeep/shared/redis/turn-queue';

/** The longest time between two looks, in ms; well under the 2 s that section 9.5 leaves after the lease. */
const MAX_LOOK_MS = 750;
const AT_ONCE = 100;

export interface ReaperDeps {
  db: Database;
  events: EventStream;
  signals: Signals;
  turnQueue: TurnQueue;
  leaseMs: number;
  log: Log;
}

/** Interrupts executions whose worker gave no sign for a lease (contract, section 9.5), whoever's they were, and wakes their sessions. */
export class Reaper {
  readonly #deps: ReaperDeps;
  #timer: NodeJS.Timeout | null = null;
  #looking: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(deps: ReaperDeps) {
    this.#deps = deps;
  }

  start(): void {
    if (this.#stopped) return;
    const ms = Math.min(MAX_LOOK_MS, this.#deps.leaseMs / 4) * (0.8 + 0.4 * Math.random());
    this.#timer = setTimeout(() => {
      this.#looking = this.#look().finally(() => this.start());
    }, ms);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer) clearTimeout(this.#timer);
    await this.#looking;
  }

  async #look(): Promise<void> {
    try {
      const expired = await expiredExecutions(this.#deps.db, AT_ONCE);
      await Promise.all(expired.map(({ sessionId, executionId }) => this.#interrupt(sessionId, executionId)));
    } catch (error) {
      this.#deps.log.warn({ error }, 'the reaper did not reach Postgres');
    }
  }

  async #interrupt(sessionId: string, executionId: string): Promise<void> {
    const { db, events, signals, turnQueue, log } = this.#deps;
    const interrupted = await interruptExpired(db, sessionId, executionId);
    if (!interrupted) return;
    log.warn({ sessionId, executionId }, 'an execution was interrupted: its worker gave no sign');
    const { session, usage, ready } = interrupted;
    const done: ExecutionEvent[] = [
      { type: 'error', ...INTERRUPTED },
      { type: 'done', sessionId, executionId, status: 'interrupted', usage },
    ];
    // first: 0 says that nobody knows what came before. Readers take what the record has, and then these.
    const entry = { first: 0, last: SEALED_N, lines: done.map((event) => JSON.stringify(event)) };
    await events.append(sessionId, executionId, [entry], true).catch(() => false);
    void signals.executionChanged(session, executionId);
    if (ready) await turnQueue.wake({ sessionId, agentId: session.agentId });
  }
}
