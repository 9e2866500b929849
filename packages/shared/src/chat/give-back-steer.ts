import type { Database } from '../db/database.js';
import { assertPending, findItem } from './queue-item.js';
import { readQueue } from './read-queue.js';
import type { QueueChange } from './reorder.js';
import { refreshSession } from './session-status.js';

/**
 * Gives a reservation back (contract, section 6): one transaction under the session lock. The message waits at the place
 * that it had all along. Of what is not reserved: a no-op.
 * @throws ProblemError `not_found`, `item_started`
 */
export async function giveBackSteer(db: Database, sessionId: string, queueId: string): Promise<QueueChange> {
  return db.session(sessionId, async (tx) => {
    const item = await findItem(tx, sessionId, queueId);
    assertPending(item);
    if (item.steeringExecutionId === null) return { queue: await readQueue(tx, sessionId), changed: false };
    await tx.query('update queue_items set steering_execution_id = null, reserved_order = null where id = $1', [
      queueId,
    ]);
    await refreshSession(tx, sessionId);
    return { queue: await readQueue(tx, sessionId), changed: true };
  });
}
