import type { Query } from '../db/database.js';

/**
 * Removes sessions without activity for `days`, with all that belongs to them, at most `count` (contract, section 1:
 * RETENTION_DAYS). One that runs or could start is not inactive. The marks of deleted sessions stay, since their ids are 404
 * for good; they hold nothing.
 * @returns how many were removed
 */
export async function removeInactive(db: Query, days: number, count: number): Promise<number> {
  const removed = await db.query(
    `delete from sessions where id in (
       select id from sessions
       where updated_at < now() - $1 * interval '1 day' and deleted_at is null and status in ('idle', 'suspended')
       order by updated_at limit $2 for update skip locked)
     returning id`,
    [days, count],
  );
  return removed.length;
}
