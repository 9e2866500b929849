import { createRequire } from 'node:module';
import path from 'node:path';
import { inRoot, inState } from '../setup/paths.mjs';
import { rememberedPort } from '../setup/ports.mjs';
import { startPostgres } from '../setup/postgres.mjs';
import { postgresPlace } from '../setup/postgres-place.mjs';
import { startRedis } from '../setup/redis.mjs';
import { findRedisServer } from '../setup/redis-server.mjs';
import { SetupError } from '../setup/say.mjs';

const database = 'turnkeep';

/**
 * The Postgres that DATABASE_URL names, else one of our own whose data stays in `.turnkeep/`.
 * @param {{secrets: object, record: object, note: (text: string) => void}} context
 * @returns {Promise<{url: string, exited?: Promise<string>, stop?: () => Promise<void>}>}
 */
export async function openPostgres({ secrets, record, note }) {
  if (process.env.DATABASE_URL) {
    note('the one of DATABASE_URL');
    return { url: process.env.DATABASE_URL };
  }
  const place = await postgresPlace({ kept: true });
  const service = await startPostgres({
    place,
    dataFolder: path.join(place.folder, 'postgres'),
    port: await rememberedPort(inState('postgres.port')),
    password: secrets.postgresPassword,
    durable: true,
    logFile: inState('logs', 'postgres.log'),
    record,
  });
  try {
    await createDatabase(service.url('postgres'));
  } catch (error) {
    await service.stop();
    throw error;
  }
  note(place.elsewhere ? `embedded; this clone is private to root, so its data is in ${place.folder}` : 'embedded');
  return { ...service, url: service.url(database) };
}

/**
 * The Redis that REDIS_URL names, else one of our own whose data stays in `.turnkeep/`.
 * @param {{secrets: object, record: object, note: (text: string) => void}} context
 * @returns {Promise<{url: string, exited?: Promise<string>, stop?: () => Promise<void>}>}
 */
export async function openRedis({ secrets, record, note }) {
  if (process.env.REDIS_URL) {
    note('the one of REDIS_URL');
    return { url: process.env.REDIS_URL };
  }
  const server = await findRedisServer();
  note(server.origin);
  return startRedis({
    server,
    folder: inState('redis'),
    port: await rememberedPort(inState('redis.port')),
    durable: true,
    password: secrets.redisPassword,
    logFile: inState('logs', 'redis.log'),
    record,
  });
}

async function createDatabase(url) {
  const { Client } = createRequire(inRoot('packages', 'shared', 'package.json'))('pg');
  const client = new Client({ connectionString: url });
  try {
    await client.connect();
    const { rowCount } = await client.query('select from pg_database where datname = $1', [database]);
    if (rowCount === 0) await client.query(`create database ${database}`);
  } catch (error) {
    const lost =
      error.code === '28P01' ? ' .turnkeep/secrets.json does not fit the data: restore it, or remove .turnkeep/.' : '';
    throw new SetupError(`The embedded Postgres refused: ${error.message}.${lost}`);
  } finally {
    await client.end();
  }
}
