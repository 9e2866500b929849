import pg from 'pg';
import { within } from './deadline.js';
import type { TestDatabase } from './postgres.js';

/** Tells a test that a row has been committed, on a connection of its own. */
export interface CommitWatch {
  /** Resolves at the next commit that the watch's condition holds for. */
  readonly committed: Promise<void>;
  stop(): Promise<void>;
}

/**
 * Watches for the commit of an insert, update or delete of `table` for which `condition` holds; the condition speaks
 * of `new` (or `old` for a delete). By a trigger that notifies: the notice comes with the commit, not before.
 */
export async function watchCommit(
  database: TestDatabase,
  event: 'insert' | 'update' | 'delete',
  table: string,
  condition = 'true',
): Promise<CommitWatch> {
  const name = `watch_${event}_${table}`;
  await database.query(`
    create or replace function ${name}() returns trigger language plpgsql as $$
    begin perform pg_notify('${name}', ''); return null; end $$`);
  await database.query(`
    create or replace trigger ${name} after ${event} on ${table} for each row when (${condition})
    execute function ${name}()`);
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query(`listen ${name}`);
  const noticed = new Promise<void>((resolve) => client.once('notification', () => resolve()));
  return {
    committed: within(noticed, () => `no ${event} of ${table} where ${condition} was committed`),
    stop: async () => {
      await client.end();
      await database.query(`drop trigger if exists ${name} on ${table}`);
    },
  };
}
