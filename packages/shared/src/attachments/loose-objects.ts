import type { Query } from '../db/database.js';
import type { AttachmentStore } from './store.js';

/*
 * Objects of the store that no attachment names. A row is written before an object is, and goes in the transaction that
 * gives the object to an attachment; deleting an attachment writes one again, by a trigger, since rows go by cascades from
 * messages, sessions and agents. So whatever dies when, each object stands in `attachments` or here.
 */

/** Long enough for any upload, and for the transaction after it. */
const UPLOAD = '1 hour';
/** How long after a failed request its object may still come to be. */
const LATE = '1 minute';
/** When a removal that did not succeed is tried again; meanwhile no other worker tries. */
const AGAIN = '5 minutes';

/** Notes objects that are about to be written. One statement, however many. */
export async function expectObjects(db: Query, keys: readonly string[]): Promise<void> {
  await db.query(
    `insert into loose_objects (key, state, due_at)
     select key, 'uploading', now() + interval '${UPLOAD}' from unnest($1::text[]) key`,
    [keys],
  );
}

/**
 * Gives up objects that no attachment came to name: they are removed soon. One that an attachment names is not touched.
 * @param late where the request that wrote them failed, and they may still come to be
 */
export async function giveUpObjects(db: Query, keys: readonly string[], late = false): Promise<void> {
  await db.query(
    `update loose_objects set state = 'doomed', due_at = now() + interval '${late ? LATE : '0'}'
     where key = any($1) and state = 'uploading'`,
    [keys],
  );
}

/**
 * Removes objects whose time has come, at most `count`, several workers beside each other. Removing again what is gone does no
 * harm, so nothing is locked while the store works.
 * @returns how many were due, and how many of them are gone
 */
export async function removeLooseObjects(
  db: Query,
  store: AttachmentStore,
  count: number,
): Promise<{ due: number; gone: number }> {
  const rows = await db.query<{ key: string }>(
    `update loose_objects set state = 'doomed', due_at = now() + interval '${AGAIN}'
     where key in (select key from loose_objects where due_at <= now() order by due_at limit $1 for update skip locked)
     returning key`,
    [count],
  );
  if (rows.length === 0) return { due: 0, gone: 0 };
  const gone = await store.remove(rows.map(({ key }) => key));
  if (gone.length > 0) await db.query(`delete from loose_objects where key = any($1) and state = 'doomed'`, [gone]);
  return { due: rows.length, gone: gone.length };
}
