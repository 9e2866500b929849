import { readOutcomes } from '@turnkeep/shared/chat/events-from-record';
import type { Query } from '@turnkeep/shared/db/database';
import { channels } from '@turnkeep/shared/redis/keys';
import type { Outcome, SignalListener } from '@turnkeep/shared/redis/signals';

/** How long a stream waits for Redis to confirm that it hears a session; without that it relies on looking, in ms. */
const SUBSCRIBE_MS = 300;

export interface WaitedOutcome extends Pick<Outcome, 'outcome' | 'executionId'> {
  /** True where a signal told, just when it happened; false where a look at Postgres did, some time after. */
  isNow: boolean;
}

/** A wait for what becomes of a queue item, or of an accepted resume. */
export interface Wait {
  /** Resolves when Redis has confirmed the subscription, or after a short while: from then on nothing is missed for long. */
  ready: Promise<void>;
  /** What became of it; null where the wait was given up. */
  outcome: Promise<WaitedOutcome | null>;
  /** Gives up. Safe to call at any time. */
  close: () => void;
}

/**
 * What this main's streams wait for. A signal tells at once; every two seconds, and after each reconnect, `look` asks Postgres
 * for all of them in one statement, so a signal that got lost, or was never sent, delays and loses nothing.
 */
export class Waiting {
  readonly #db: Query;
  readonly #listener: SignalListener;
  readonly #waits = new Map<string, Set<(outcome: WaitedOutcome | null) => void>>();

  constructor(db: Query, listener: SignalListener) {
    this.#db = db;
    this.#listener = listener;
  }

  /** Starts to wait for what becomes of `id`, a queueId or a checkpoint's id, of this session. */
  wait(sessionId: string, id: string): Wait {
    let resolveOutcome: (outcome: WaitedOutcome | null) => void = () => {};
    const outcome = new Promise<WaitedOutcome | null>((resolve) => {
      resolveOutcome = resolve;
    });
    const subscription = this.#listener.listen(channels.session(sessionId), (signal) => {
      if (signal.kind === 'outcome' && signal.of === id) settle({ ...signal, isNow: true });
    });
    const settle = (result: WaitedOutcome | null) => {
      resolveOutcome(result);
      subscription.close();
      const waits = this.#waits.get(id);
      waits?.delete(settle);
      if (waits?.size === 0) this.#waits.delete(id);
    };
    this.#waits.set(id, (this.#waits.get(id) ?? new Set()).add(settle));
    return { ready: soon(subscription.ready), outcome, close: () => settle(null) };
  }

  /** Asks Postgres what became of all that is waited for, or of one. */
  async look(ids: string[] = [...this.#waits.keys()]): Promise<void> {
    if (ids.length === 0) return;
    for (const { of, outcome, executionId } of await readOutcomes(this.#db, ids))
      for (const settle of [...(this.#waits.get(of) ?? [])]) settle({ outcome, executionId, isNow: false });
  }
}

async function soon(ready: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, SUBSCRIBE_MS);
  });
  await Promise.race([ready, late]);
  clearTimeout(timer);
}
