import { openStore } from '@turnkeep/shared/attachments/open-store';
import { type Config, ConfigError, readConfig } from '@turnkeep/shared/config';
import { Database } from '@turnkeep/shared/db/database';
import { waitForSchema } from '@turnkeep/shared/db/migrate';
import { createLog, type Log } from '@turnkeep/shared/log';
import { createApp } from './app.js';
import { listen } from './http/server.js';
import { startLive } from './live.js';
import { createMetrics } from './ops/metrics.js';

/** Connections to Postgres that one main holds at most. */
const POSTGRES_CONNECTIONS = 20;
/** How long, after the streams have ended, the last answers may take, in ms. */
const LAST_ANSWERS_MS = 5_000;

async function main(): Promise<void> {
  const config = readConfig(process.env);
  const log = createLog('main', config.logLevel);
  process.on('unhandledRejection', (error) => {
    log.fatal({ error }, 'unhandled rejection');
    process.exit(1);
  });
  process.on('uncaughtException', (error) => {
    log.fatal({ error }, 'uncaught exception');
    process.exit(1);
  });
  const stopping = onStopSignal(log);
  const db = new Database(config.databaseUrl, POSTGRES_CONNECTIONS, (error) => log.warn({ error }, 'postgres'));
  await waitForSchema(db);
  await serve(config, log, db, stopping);
}

/** Puts a main together, and takes it apart again at SIGTERM. */
async function serve(config: Config, log: Log, db: Database, stopping: Stopping): Promise<void> {
  const live = await startLive(config, log, db);
  const attachmentStore = openStore(config.attachments);
  const app = createApp({
    ...live.deps,
    config,
    log,
    db,
    attachmentStore,
    metrics: createMetrics(),
    isDraining: () => stopping.asked,
  });
  const server = await listen(app, config.host, config.port);
  log.info({ port: server.port, host: config.host }, 'listening');

  stopping.stop = async () => {
    server.stopListening();
    await live.deps.streams.drain(config.shutdownGraceMs);
    await server.closed(LAST_ANSWERS_MS);
    await live.stop();
    await db.stop();
  };
}

interface Stopping {
  asked: boolean;
  /** What to do at the first signal; a process that still starts has nothing to stop. */
  stop: () => Promise<void>;
}

/** The first SIGTERM or SIGINT stops the process in order and with exit code 0; a second one at once. */
function onStopSignal(log: Log): Stopping {
  const stopping: Stopping = { asked: false, stop: async () => {} };
  const onSignal = (signal: string) => {
    if (stopping.asked) process.exit(0);
    stopping.asked = true;
    log.info({ signal }, 'stopping');
    stopping.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        log.fatal({ error }, 'stopping failed');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  return stopping;
}

main().catch((error: unknown) => {
  const { message } = error instanceof Error ? error : new Error(String(error));
  console.error(error instanceof ConfigError ? message : `The main did not start: ${message}`);
  process.exit(1);
});
