import pg from 'pg';
import { within } from './deadline.js';
import type { TestDatabase } from './postgres.js';

/** Tells a test of commits, on a connection of its own. */
export interface CommitWatch {
  /** Resolves with the row, as JSON has it, of the next commit that is told of and has these fields. */
  next(fields?: Record<string, unknown>): Promise<Record<string, unknown>>;
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
    next: (fields = {}) => {
      const noticed = new Promise<Record<string, unknown>>((resolve) => {
        const listener = ({ payload }: { payload?: string | undefined }) => {
          const row = JSON.parse(payload ?? '{}') as Record<string, unknown>;
          if (Object.entries(fields).some(([name, value]) => row[name] !== value)) return;
          client.off('notification', listener);
          resolve(row);
        };
        client.on('notification', listener);
      });
      return within(
        noticed,
        () => `no ${event} of ${table} where ${condition} ${JSON.stringify(fields)} was committed`,
      );
    },
    stop: async () => {
      await client.end();
      await database.query(`drop trigger if exists ${name} on ${table}`);
    },
  };
}
