import pg from 'pg';
import { eventually } from './deadline.js';
import type { TestDatabase } from './postgres.js';

/** A row that a test holds, so that a transaction of the product's stands still where it wants it. */
export interface HeldRow {
  /** Resolves once `count` transactions wait for the row. */
  awaited(count?: number): Promise<void>;
  release(): Promise<void>;
}

/**
 * Locks one row on a connection of the test's own. Who waits for a row gets it in the order of coming, so that a test can
 * also say who comes first. It is the lock that the product takes: what merely refers to the row does not wait for it.
 */
export async function holdRow(database: TestDatabase, table: string, id: string): Promise<HeldRow> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query('begin');
  await client.query(`select from ${table} where id = $1 for no key update`, [id]);
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  const pid = rows[0]?.pid;
  return {
    awaited: async (count = 1) => {
      await eventually(`fewer than ${count} transactions wait for the row of ${table}`, async () => {
        const waiting = await database.query<{ pid: number; by: number[] }>(
          'select pid, pg_blocking_pids(pid) as by from pg_stat_activity where datname = current_database()',
        );
        return blockedBy(pid ?? 0, waiting) >= count;
      });
    },
    release: async () => {
      await client.query('rollback');
      await client.end();
    },
  };
}

/** How many wait for this one, by way of others too: the second in the line waits for the first. */
function blockedBy(pid: number, activity: readonly { pid: number; by: number[] }[]): number {
  const behind = new Set([pid]);
  for (let size = 0; size !== behind.size; ) {
    size = behind.size;
    for (const one of activity) if (one.by.some((by) => behind.has(by))) behind.add(one.pid);
  }
  return behind.size - 1;
}
