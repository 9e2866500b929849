import type { QueueItemView } from '../contract/chat.js';
import { ProblemError } from '../contract/problems.js';
import type { Database, Query } from '../db/database.js';
import { assertPending, findItem } from './queue-item.js';
import { readQueue } from './read-queue.js';
import { refreshSession } from './session-status.js';
import { retitle } from './title.js';

/**
 * Gives a pending message another text (contract, section 6): one transaction under the session lock. Its place, its
 * attachments and its reservation stay.
 * @param text within the configured limit; empty only where the message has an attachment
 * @returns the item as it stands now
 * @throws ProblemError `not_found`, `invalid_request`, `item_started`
 */
export async function editItem(db: Database, sessionId: string, queueId: string, text: string): Promise<QueueItemView> {
  return db.session(sessionId, async (tx) => {
    const item = await findItem(tx, sessionId, queueId);
    if (text === '' && !(await hasAttachments(tx, item.messageId))) throw emptyMessage();
    assertPending(item);
    await tx.query('update messages set text = $2 where id = $1', [item.messageId, text]);
    await retitle(tx, sessionId);
    await refreshSession(tx, sessionId);
    const { items } = await readQueue(tx, sessionId);
    const edited = items.find(({ id }) => id === queueId);
    if (!edited) throw new Error('an item that was edited is not in its queue');
    return edited;
  });
}

async function hasAttachments(tx: Query, messageId: string): Promise<boolean> {
  const rows = await tx.query('select id from attachments where message_id = $1 limit 1', [messageId]);
  return rows.length > 0;
}

function emptyMessage(): ProblemError {
  const errors = [{ pointer: '/message', message: 'must not be empty without an attachment' }];
  return new ProblemError('invalid_request', 'The body is not valid.', { errors });
}
