import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { inState, makeFolder } from './paths.mjs';
import { freePort } from './ports.mjs';
import { startPostgres } from './postgres.mjs';
import { postgresPlace } from './postgres-place.mjs';
import { clearLeftovers, openRecord } from './records.mjs';
import { startRedis } from './redis.mjs';
import { findRedisServer } from './redis-server.mjs';
import { SetupError, step } from './say.mjs';

/**
 * A Postgres and a Redis for one run of the tests or the bench, unless TEST_DATABASE_URL or TEST_REDIS_URL name
 * others. Everything in them is new, and goes with `stop()`; several runs do not meet.
 *
 * @param {{kind: 'test' | 'bench', durable: boolean, settings?: string[]}} options
 * @returns {Promise<{env: Record<string, string>, folder: string, note: (child: object) => void, stop: () => Promise<void>}>}
 *   `env`: where they are, for children; `folder`: goes with them; `note`: remembers a child, see `openRecord`
 */
export async function startThrowAway({ kind, durable, settings }) {
  await clearLeftovers(kind);
  const record = openRecord(kind);
  const folder = makeFolder(inState(kind, String(process.pid)));
  record.addFolder(folder);
  const started = [];
  const stop = async () => {
    for (const service of started.splice(0).reverse()) await service.stop();
    record.close();
  };
  try {
    const context = { folder, durable, settings, record, started };
    const databaseUrl = process.env.TEST_DATABASE_URL ?? (await step('Postgres', () => postgres(context)));
    const redis = await step('Redis', () => redisOf(context));
    return { env: { TEST_DATABASE_URL: databaseUrl, ...redis }, folder, note: record.addProcess, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function postgres({ folder, durable, settings, record, started }) {
  const place = await postgresPlace({ kept: false });
  if (place.elsewhere) record.addFolder(place.folder);
  const service = await withFreePort(folder, 'postgres', (port, logFile) =>
    startPostgres({
      place,
      dataFolder: path.join(place.elsewhere ? place.folder : folder, 'postgres'),
      port,
      password: randomBytes(18).toString('base64url'),
      durable,
      settings,
      logFile,
      record,
    }),
  );
  started.push(service);
  return service.url('postgres');
}

async function redisOf({ folder, durable, record, started }) {
  const server = await findRedisServer();
  const own = {
    TURNKEEP_REDIS_SERVER: server.command,
    ...(server.libraryPath ? { TURNKEEP_REDIS_LD_LIBRARY_PATH: server.libraryPath } : {}),
  };
  if (process.env.TEST_REDIS_URL) return { TEST_REDIS_URL: process.env.TEST_REDIS_URL, ...own };
  const service = await withFreePort(folder, 'redis', (port, logFile) =>
    startRedis({ server, folder: path.join(folder, 'redis'), port, durable, logFile, record }),
  );
  started.push(service);
  return { TEST_REDIS_URL: service.url, ...own };
}

/** Between our asking for a free port and the server's taking it, another process may: then once more. */
async function withFreePort(folder, name, start) {
  for (let attempt = 1; ; attempt++) {
    const logFile = path.join(folder, `${name}-${attempt}.log`);
    try {
      return await start(await freePort(), logFile);
    } catch (error) {
      if (!(error instanceof SetupError) || attempt === 3) throw error;
    }
  }
}
