import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import pg from 'pg';
import { REPOSITORY, required } from './environment.js';

/** A database of its own, with the product's schema, that one test file uses. */
export interface TestDatabase {
  readonly url: string;
  /** Runs one statement and answers with its rows. */
  query<T = Record<string, unknown>>(sql: string, values?: unknown[]): Promise<T[]>;
  /** The names of the tables in which some row holds this text, in whatever column. */
  tablesHolding(text: string): Promise<string[]>;
  /** Closes the connections and removes the database, whoever still uses it. */
  drop(): Promise<void>;
}

let template: Promise<string> | undefined;

/** Clones a database from a migrated template, which is made on the first call of a run. */
export async function createDatabase(): Promise<TestDatabase> {
  template ??= createTemplate();
  const name = uniqueName();
  await administer(`create database ${name} template ${await template}`);
  const url = urlOf(name);
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  // A test may restart Postgres under an idle connection; the next query opens another.
  pool.on('error', () => {});
  const query = async <T>(sql: string, values: unknown[] = []) => (await pool.query(sql, values)).rows as T[];
  return {
    url,
    query,
    tablesHolding: async (text) => {
      const tables = await query<{ name: string }>(
        `select table_name as name from information_schema.tables where table_schema = 'public'`,
      );
      const holding: string[] = [];
      for (const { name } of tables) {
        const rows = await query(`select 1 from "${name}" t where position($1 in t::text) > 0 limit 1`, [text]);
        if (rows.length > 0) holding.push(name);
      }
      return holding;
    },
    drop: async () => {
      await pool.end();
      await administer(`drop database if exists ${name} with (force)`);
    },
  };
}

/** An empty database, without a schema: for tests of the migration itself. */
export async function createEmptyDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const name = uniqueName();
  await administer(`create database ${name}`);
  return { url: urlOf(name), drop: () => administer(`drop database if exists ${name} with (force)`) };
}

/** Removes the template; called once at the end of a run. */
export async function dropTemplate(): Promise<void> {
  if (template !== undefined) await administer(`drop database if exists ${await template} with (force)`);
  template = undefined;
}

async function createTemplate(): Promise<string> {
  const name = uniqueName();
  await administer(`create database ${name}`);
  await promisify(execFile)(process.execPath, ['packages/shared/dist/db/migrate.js'], {
    cwd: REPOSITORY,
    env: { PATH: process.env.PATH, DATABASE_URL: urlOf(name), LOG_LEVEL: 'warn' },
  });
  return name;
}

async function administer(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: required('TEST_DATABASE_URL') });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

function uniqueName(): string {
  return `turnkeep_test_${randomBytes(6).toString('hex')}`;
}

function urlOf(database: string): string {
  const url = new URL(required('TEST_DATABASE_URL'));
  url.pathname = `/${database}`;
  return url.href;
}
