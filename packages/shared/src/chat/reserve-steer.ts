import { ProblemError } from '../contract/problems.js';
import type { Database, Query } from '../db/database.js';
import { assertPending, findItem } from './queue-item.js';
import { readQueue } from './read-queue.js';
import type { QueueChange } from './reorder.js';
import { refreshSession } from './session-status.js';

/**
 * Steers a pending message (contract, section 6): one transaction under the session lock reserves it for the execution
 * that runs now. It keeps its place in the queue until a boundary of that execution consumes it, in the order of
 * reservations. Again for the same execution: a no-op, which keeps its place in that order.
 * @throws ProblemError `not_found`, `item_started`, `execution_not_steerable`
 */
export async function reserveSteer(
  db: Database,
  sessionId: string,
  queueId: string,
  executionId: string,
): Promise<QueueChange> {
  return db.session(sessionId, async (tx) => {
    const item = await findItem(tx, sessionId, queueId);
    assertPending(item);
    if (item.steeringExecutionId === executionId) return { queue: await readQueue(tx, sessionId), changed: false };
    if (!(await isSteerable(tx, sessionId, executionId)))
      throw new ProblemError('execution_not_steerable', 'This turn takes no more messages. The message stays queued.');
    await tx.query(
      `update queue_items set steering_execution_id = $2, reserved_order = (
         select coalesce(max(reserved_order), 0) + 1 from queue_items where steering_execution_id = $2)
       where id = $1`,
      [queueId, executionId],
    );
    await refreshSession(tx, sessionId);
    return { queue: await readQueue(tx, sessionId), changed: true };
  });
}

async function isSteerable(tx: Query, sessionId: string, executionId: string): Promise<boolean> {
  const rows = await tx.query(
    `select id from executions where id = $2 and session_id = $1 and status = 'running' and steerable`,
    [sessionId, executionId],
  );
  return rows.length > 0;
}
