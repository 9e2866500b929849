import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import knex, { type Knex } from 'knex';
import { DatabaseAway, type Query } from './database.js';
import * as foundation from './migrations/0001-foundation.js';

/** The migrations in their order. A new one is added at the end and never changed after a release. */
const MIGRATIONS = [foundation];

/** The schema that this release was written for. */
export const SCHEMA_VERSION = MIGRATIONS.length;

/**
 * The oldest release's schema that still runs beside this one. A migration that takes something away that an older
 * release uses ('contract') raises it; one that only adds ('expand') does not.
 */
const OLDEST_COMPATIBLE = 1;

const source: Knex.MigrationSource<(typeof MIGRATIONS)[number]> = {
  getMigrations: async () => MIGRATIONS,
  getMigrationName: (migration) => migration.name,
  getMigration: async (migration) => ({
    up: async (db) => {
      await db.raw(withoutBindings(migration.up));
    },
    down: async () => {},
  }),
};

/** knex.raw reads every '?' as a binding, even where none are given. */
function withoutBindings(sql: string): string {
  return sql.replaceAll('?', '\\?');
}

/**
 * Brings the schema of the database at `url` up to date. Safe to run from several processes at once: one transaction
 * holds a transaction-level advisory lock throughout.
 */
export async function migrate(url: string): Promise<void> {
  const db = knex({ client: 'pg', connection: url, pool: { min: 0, max: 2 } });
  try {
    await db.transaction(async (trx) => {
      await trx.raw('select pg_advisory_xact_lock(7448112, 1)');
      await trx.migrate.latest({
        migrationSource: source,
        tableName: 'schema_migrations',
        disableMigrationsListValidation: true,
        disableTransactions: true,
      });
      await trx.raw(
        'create table if not exists schema_version (version integer not null, oldest_compatible integer not null)',
      );
      await trx.raw(`delete from schema_version where version <= ${SCHEMA_VERSION}`);
      await trx.raw(
        `insert into schema_version select ${SCHEMA_VERSION}, ${OLDEST_COMPATIBLE} where not exists (select from schema_version)`,
      );
    });
  } finally {
    await db.destroy();
  }
}

/**
 * Throws where the database's schema is not one that this release can run on: older than it was written for, or so
 * new that it no longer promises to serve it (contract, section 1).
 */
export async function assertSchema(db: Query): Promise<void> {
  const known = await db.query<{ found: boolean }>("select to_regclass('schema_version') is not null as found");
  const [row] = known[0]?.found
    ? await db.query<{ version: number; oldest_compatible: number }>(
        'select version, oldest_compatible from schema_version',
      )
    : [];
  if (!row || row.version < SCHEMA_VERSION)
    throw new Error(
      `DATABASE_URL: the schema is older than this release; run packages/shared/dist/db/migrate.js first`,
    );
  if (row.oldest_compatible > SCHEMA_VERSION)
    throw new Error(`DATABASE_URL: the schema is newer than this release can serve; start a newer release`);
}

/** How long a process waits at its start for a Postgres that is away, in ms. */
const START_MS = 10_000;

/** At the start of a process: waits a while for Postgres, then throws where the schema is none that this release can serve. */
export async function waitForSchema(db: Query): Promise<void> {
  const start = performance.now();
  for (;;) {
    try {
      return await assertSchema(db);
    } catch (error) {
      if (!(error instanceof DatabaseAway)) throw error;
      if (performance.now() - start > START_MS) throw new Error('DATABASE_URL: Postgres cannot be reached');
      await pause(500);
    }
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const url = process.env.DATABASE_URL;
  if (!url) {
    console.error('DATABASE_URL is missing');
    process.exit(1);
  }
  migrate(url).then(
    () => console.log(`The schema is at version ${SCHEMA_VERSION}.`),
    (error: Error) => {
      console.error(`The migration failed: ${error.message}`);
      process.exit(1);
    },
  );
}
