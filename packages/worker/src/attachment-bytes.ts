import { setTimeout as pause } from 'node:timers/promises';
import { type AttachmentStore, StoreAway } from '@turnkeep/shared/attachments/store';
import { loadBytes } from '@turnkeep/shared/chat/attachments';
import type { Database } from '@turnkeep/shared/db/database';
import type { RunningTurn } from './running-turn.js';
import { TurnFailure } from './runtime/failure.js';

/** Where a turn's attachments are read from. */
export interface BytesSource {
  db: Database;
  attachmentStore: AttachmentStore;
}

/** How long a turn waits for a store that is away before each further try, in ms; the store itself tries a few times, too. */
const PAUSES_MS = [1_000, 4_000];

/**
 * The bytes of an attachment for the model; null where they are gone, as an operator's rule for old objects may have it.
 * A store that restarts is waited for; the turn's Stop ends the wait.
 * @throws TurnFailure `internal` where the store stays away
 */
export async function loadPatiently(
  { db, attachmentStore }: BytesSource,
  turn: RunningTurn,
  attachmentId: string,
): Promise<Buffer | null> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await loadBytes(db, attachmentStore, attachmentId);
    } catch (error) {
      if (!(error instanceof StoreAway)) throw error;
      const pauseMs = PAUSES_MS[attempt];
      if (pauseMs === undefined) throw storeStaysAway(error);
      await pause(pauseMs, undefined, { signal: turn.signal });
    }
  }
}

function storeStaysAway(cause: StoreAway): TurnFailure {
  const text = 'A file of this chat cannot be read, because the store of attachments does not answer. Try again later.';
  return new TurnFailure('internal', text, { cause });
}
