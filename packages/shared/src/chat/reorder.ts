import type { QueueView } from '../contract/chat.js';
import { ProblemError } from '../contract/problems.js';
import type { Database, Query } from '../db/database.js';
import { assertPending, findItem } from './queue-item.js';
import { readQueue } from './read-queue.js';
import { refreshSession } from './session-status.js';

export interface Reordering {
  queueId: string;
  /** Whose place it takes. */
  targetQueueId: string;
  /** The order that the client saw: what is pending, without reserved steers. */
  expectedQueueIds: string[];
}

/** What a change of the queue came to. `changed` is false for a no-op, of which nobody needs to hear. */
export interface QueueChange {
  queue: QueueView;
  changed: boolean;
}

/**
 * Moves a pending message to another one's place and shifts those between (contract, section 6): one transaction under the
 * session lock permutes the unreserved items among their places, so a reserved one keeps its own. Onto itself: a no-op.
 * @throws ProblemError `not_found` and `item_started` for either of the two, `queue_changed`, `item_reserved`
 */
export async function reorderItem(db: Database, sessionId: string, reordering: Reordering): Promise<QueueChange> {
  const { queueId, targetQueueId, expectedQueueIds } = reordering;
  return db.session(sessionId, async (tx) => {
    const item = await findItem(tx, sessionId, queueId);
    const target = await findItem(tx, sessionId, targetQueueId);
    assertPending(item);
    assertPending(target);
    if (queueId === targetQueueId) return { queue: await readQueue(tx, sessionId), changed: false };
    const places = await movablePlaces(tx, sessionId);
    const ids = places.map(({ id }) => id);
    if (ids.join() !== expectedQueueIds.join())
      throw new ProblemError('queue_changed', 'The queue has changed since you read it. Read it again.');
    if (item.steeringExecutionId !== null || target.steeringExecutionId !== null)
      throw new ProblemError('item_reserved', 'A message that is reserved for the running turn keeps its place.');
    await place(tx, moved(ids, queueId, targetQueueId), places);
    await refreshSession(tx, sessionId);
    return { queue: await readQueue(tx, sessionId), changed: true };
  });
}

interface Place {
  id: string;
  position: number;
}

async function movablePlaces(tx: Query, sessionId: string): Promise<Place[]> {
  return tx.query<Place>(
    `select id, position from queue_items where session_id = $1 and steering_execution_id is null order by position`,
    [sessionId],
  );
}

function moved(ids: string[], queueId: string, targetQueueId: string): string[] {
  const rest = ids.filter((id) => id !== queueId);
  rest.splice(ids.indexOf(targetQueueId), 0, queueId);
  return rest;
}

/** Two items change places within the statement: the uniqueness of places is checked at its end. */
async function place(tx: Query, ids: string[], places: Place[]): Promise<void> {
  await tx.query(
    `update queue_items q set position = p.position from unnest($1::uuid[], $2::bigint[]) as p (id, position)
     where q.id = p.id and q.position <> p.position`,
    [ids, places.map(({ position }) => position)],
  );
}
