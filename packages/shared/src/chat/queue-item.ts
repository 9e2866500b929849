import { ProblemError } from '../contract/problems.js';
import type { Query } from '../db/database.js';

/** A queue item as a change of the queue finds it. */
export interface QueueItem {
  id: string;
  messageId: string;
  /** False: it started, was steered in, or was removed. */
  isPending: boolean;
  /** The running execution that it is reserved for. */
  steeringExecutionId: string | null;
}

/**
 * Finds a queue item that is or was in a session, however long ago (contract, section 6). Under the session lock the answer
 * holds until the commit.
 * @throws ProblemError `not_found` for an id that never was in this session
 */
export async function findItem(db: Query, sessionId: string, queueId: string): Promise<QueueItem> {
  const [item] = await db.query<QueueItem>(
    `select id, message_id as "messageId", true as "isPending", steering_execution_id as "steeringExecutionId"
     from queue_items where id = $2 and session_id = $1
     union all
     select queue_id, message_id, false, null from queue_outcomes where queue_id = $2 and session_id = $1`,
    [sessionId, queueId],
  );
  if (!item) throw new ProblemError('not_found', 'There is nothing here, or it is not yours.');
  return item;
}

/**
 * Refuses what is no longer in the queue.
 * @throws ProblemError `item_started`
 */
export function assertPending(item: QueueItem): void {
  if (item.isPending) return;
  throw new ProblemError('item_started', 'This message has started, was steered into a turn, or was removed.');
}
