import pg from 'pg';
import { within } from './deadline.js';
import type { TestDatabase } from './postgres.js';

/** Tells a test of commits, on a connection of its own. */
export interface CommitWatch {
  /** Resolves with the row of the next commit that the watch's condition holds for, as JSON has it. */
  next(): Promise<Record<string, unknown>>;
  stop(): Promise<void>;
}

/**
 * Watches for commits of an insert, update or delete of `table` for which `condition` holds; the condition speaks of
 * `new` (or `old` for a delete). By a trigger that notifies: the notice comes with the commit, not before. Rows above
 * 8000 bytes of JSON cannot be told of.
 */
export async function watchCommits(
  database: TestDatabase,
  event: 'insert' | 'update' | 'delete',
  table: string,
  condition = 'true',
): Promise<CommitWatch> {
  const name = `watch_${event}_${table}`;
  await database.query(`
    create or replace function ${name}() returns trigger language plpgsql as $$
    begin perform pg_notify('${name}', row_to_json(${event === 'delete' ? 'old' : 'new'})::text); return null; end $$`);
  await database.query(`
    create or replace trigger ${name} after ${event} on ${table} for each row when (${condition})
    execute function ${name}()`);
  const client = new pg.Client({ connectionString: database.url });
  client.on('error', () => {}); // A test may take Postgres away; what was to be told is then missed, and missing.
  await client.connect();
  await client.query(`listen ${name}`);
  return {
    next: () => {
      const noticed = new Promise<Record<string, unknown>>((resolve) => {
        client.once('notification', ({ payload }) => resolve(JSON.parse(payload ?? '{}')));
      });
      return within(noticed, () => `no ${event} of ${table} where ${condition} was committed`);
    },
    stop: async () => {
      await client.end();
      await database.query(`drop trigger if exists ${name} on ${table}`);
    },
  };
}
