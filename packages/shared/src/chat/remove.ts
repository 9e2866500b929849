import type { Database } from '../db/database.js';
import { assertPending, findItem } from './queue-item.js';
import { refreshSession } from './session-status.js';
import { retitle } from './title.js';

/**
 * Removes a pending message with its attachments (contract, section 6): one transaction under the session lock. Its
 * queueId is kept, of its text nothing. After the commit, the streams that wait for it are told.
 * @throws ProblemError `not_found`, `item_started`
 */
export async function removeItem(db: Database, sessionId: string, queueId: string): Promise<void> {
  await db.session(sessionId, async (tx) => {
    const item = await findItem(tx, sessionId, queueId);
    assertPending(item);
    // The queue item and the attachments go with the message: they refer to it.
    await tx.query(
      `with removed as (
         delete from messages where id = $3 returning id
       )
       insert into queue_outcomes (queue_id, session_id, message_id, outcome) select $1, $2, id, 'removed' from removed`,
      [queueId, sessionId, item.messageId],
    );
    await retitle(tx, sessionId);
    await refreshSession(tx, sessionId);
  });
}
