import { ConfigError, readConfig } from '@turnkeep/shared/config';
import { createLog } from '@turnkeep/shared/log';
import { startWorker } from './worker.js';

/** The worker process (contract, section 1). A first SIGTERM drains, a second interrupts at once. */
async function main(): Promise<void> {
  const config = readConfig(process.env);
  const log = createLog('worker', config.logLevel);
  process.on('unhandledRejection', (error) => {
    log.fatal({ error }, 'unhandled rejection');
    process.exit(1);
  });
  // A signal that comes while the worker starts stops it as soon as it has.
  const starting = startWorker(config, log);
  const stop = () => {
    log.info('stopping');
    void starting
      .then((worker) => worker.stop(config.shutdownGraceMs))
      .then(() => {
        log.info('stopped');
        process.exit(0);
      });
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  const { port, workerId } = await starting;
  log.info({ port, workerId }, 'listening');
}

main().catch((error: Error) => {
  const reason = error instanceof ConfigError ? error.message : `The worker cannot start: ${error.message}`;
  console.error(reason.split('\n')[0]);
  process.exit(1);
});
