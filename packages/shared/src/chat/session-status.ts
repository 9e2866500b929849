import type { Query } from '../db/database.js';

/**
 * Derives what a session is from what it holds: its status, and since when its next turn can start. Every change of a
 * session calls it last, under the session lock; nothing else writes these columns.
 *
 * | holds | status | ready |
 * | --- | --- | --- |
 * | a running execution | running | no |
 * | an answered checkpoint (its continuation waits) | queued | yes |
 * | an open checkpoint | suspended | no |
 * | a pending message | queued | yes |
 * | none of these | idle | no |
 *
 * @returns whether the session has something to start now, so that somebody should be woken
 */
export async function refreshSession(tx: Query, sessionId: string): Promise<{ ready: boolean }> {
  const [row] = await tx.query<{ ready: boolean }>(
    `with holds as (
       select exists (select from executions where session_id = $1 and status = 'running') as running,
              (select status from checkpoints where session_id = $1 and status in ('open', 'answered')) as checkpoint,
              exists (select from queue_items where session_id = $1) as pending
     ), derived as (
       select case when running then 'running' when checkpoint = 'answered' then 'queued'
                   when checkpoint = 'open' then 'suspended' when pending then 'queued' else 'idle' end as status,
              not running and coalesce(checkpoint = 'answered', pending) as ready
       from holds
     )
     update sessions set status = derived.status, updated_at = clock_timestamp(),
       ready_at = case when derived.ready then coalesce(ready_at, clock_timestamp()) end
     from derived where id = $1 returning derived.ready`,
    [sessionId],
  );
  return { ready: row?.ready ?? false };
}
