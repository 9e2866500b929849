import { type ClaimResult, claimNext } from '@turnkeep/shared/chat/claim';
import { isCancelRequested } from '@turnkeep/shared/chat/lease';
import { newId } from '@turnkeep/shared/contract/ids';
import type { Database } from '@turnkeep/shared/db/database';
import type { ChatLock, HeldLock } from '@turnkeep/shared/redis/chat-lock';
import type { Leases } from './leases.js';
import { RunningTurn } from './running-turn.js';

/** How long admission waits for a chat lock that a Stop holds, in ms. */
const LOCK_WAIT_MS = 500;

export interface AdmissionDeps {
  db: Database;
  chatLock: ChatLock;
  leases: Leases;
  workerId: string;
  leaseMs: number;
  /** Named points at which a test can hold or kill the process; a product build does nothing there. */
  point: (name: AdmissionPoint) => Promise<void> | void;
}

export type AdmissionPoint = 'claimed' | 'registered';

/**
 * Admits the next turn of a session (contract, section 9.4): under the chat lock, the execution is recorded and its cancel
 * handle registered. `announce` sends `execution-started`. Then admission looks again, while it still holds the lock: a
 * mark stops the turn as `cancelled`, a lost lock as `interrupted`, both before anything runs. Every turn is admitted here.
 * @returns null where the session has nothing to start or somebody else is at it
 * @throws where Postgres or Redis is away; what had been claimed by then is interrupted by its lease
 */
export async function admit(
  deps: AdmissionDeps,
  sessionId: string,
  announce: (turn: RunningTurn) => void,
): Promise<RunningTurn | null> {
  const lock = await deps.chatLock.acquire(sessionId, LOCK_WAIT_MS);
  if (!lock) return null;
  try {
    const leaseEndsAt = performance.now() + deps.leaseMs;
    const { claimed } = await claim(deps, sessionId);
    if (!claimed) return null;
    await deps.point('claimed');
    const turn = new RunningTurn(claimed, deps.workerId, leaseEndsAt);
    deps.leases.register(turn);
    announce(turn);
    await deps.point('registered');
    await lookAgain(deps, lock, turn);
    return turn;
  } finally {
    await lock.release();
  }
}

async function claim(deps: AdmissionDeps, sessionId: string): Promise<ClaimResult> {
  return claimNext(deps.db, { sessionId, executionId: newId(), workerId: deps.workerId, leaseMs: deps.leaseMs });
}

async function lookAgain({ db }: AdmissionDeps, lock: HeldLock, turn: RunningTurn): Promise<void> {
  const marked = isCancelRequested(db, turn.owner.executionId).catch(() => null);
  const held = await lock.isHeld();
  if (await marked) turn.stop('cancelled');
  // Not knowing whether there is a mark is as good as a lost lock: nothing runs.
  else if (!held || (await marked) === null) turn.stop('interrupted');
}
