import { ProblemError } from '../contract/problems.js';
import type { Database, Query } from '../db/database.js';
import type { SessionRef } from './refs.js';

/** What streams may still wait for in what was deleted: queue items, and an answered checkpoint. */
export interface Removed {
  queueIds: string[];
  checkpointIds: string[];
}

/**
 * Deletes a session with all that belongs to it (contract, section 5). Its row stays as a mark, so its id is 404 for good.
 * @throws ProblemError `not_found`; `execution_running` while one runs
 */
export async function deleteSession(db: Database, session: SessionRef): Promise<Removed> {
  return db.session(session.sessionId, async (tx, locked) => {
    if (!locked) throw new ProblemError('not_found', 'There is no such session.');
    const running = await tx.query("select id from executions where session_id = $1 and status = 'running'", [
      session.sessionId,
    ]);
    if (running.length > 0)
      throw new ProblemError('execution_running', 'A turn runs in this session. Stop it first, then delete.');
    const removed = await clearWaiting(tx, session.sessionId);
    await tx.query('delete from messages where session_id = $1', [session.sessionId]);
    await tx.query('delete from executions where session_id = $1', [session.sessionId]);
    await tx.query(
      `update sessions set deleted_at = clock_timestamp(), title = '', status = 'idle', ready_at = null,
         updated_at = clock_timestamp() where id = $1`,
      [session.sessionId],
    );
    return removed;
  });
}

/** Removes all queue items of a session with their messages, and closes its checkpoint, in the caller's transaction. */
export async function clearWaiting(tx: Query, sessionId: string): Promise<Removed> {
  const items = await tx.query<{ id: string }>(
    `with items as (
       delete from queue_items where session_id = $1 returning id, message_id
     ), outcomes as (
       insert into queue_outcomes (queue_id, session_id, message_id, outcome)
       select id, $1, message_id, 'removed' from items
     )
     select id, message_id from items`,
    [sessionId],
  );
  await tx.query('delete from messages where session_id = $1 and execution_id is null', [sessionId]);
  const checkpoints = await tx.query<{ id: string; execution_id: string }>(
    `update checkpoints set status = 'cancelled', state = null
     where session_id = $1 and status in ('open', 'answered') returning id, execution_id`,
    [sessionId],
  );
  for (const { execution_id } of checkpoints) await closeSuspended(tx, execution_id);
  return { queueIds: items.map((item) => item.id), checkpointIds: checkpoints.map((row) => row.id) };
}

async function closeSuspended(tx: Query, executionId: string): Promise<void> {
  await tx.query(
    `update tool_calls set state = 'cancelled' where state in ('running', 'suspended')
       and run_id = (select run_id from executions where id = $1)`,
    [executionId],
  );
  await tx.query("update executions set status = 'cancelled', finished_at = clock_timestamp() where id = $1", [
    executionId,
  ]);
}
