// `npm run chaos`: builds the product and runs `chaos/main.ts` on it, with a Postgres and a Redis of its own to break.
// Extra arguments go to it: `--minutes 10`, `--operations 100000`, `--seed x`, `--quiet`, `--broken all`.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { build } from './setup/build.mjs';
import { installDependencies } from './setup/dependencies.mjs';
import { onInterrupt } from './setup/interrupts.mjs';
import { inState, makeFolder, root } from './setup/paths.mjs';
import { end } from './setup/processes.mjs';
import { clearLeftovers, openRecord } from './setup/records.mjs';
import { findRedisServer } from './setup/redis-server.mjs';
import { sayError, step } from './setup/say.mjs';

let child;
const noted = [];
onInterrupt(
  (signal) => child?.kill(signal),
  () => child?.kill('SIGKILL'),
);

let record;
try {
  await step('dependencies', installDependencies);
  await step('build', () => build());
  await clearLeftovers('chaos');
  record = openRecord('chaos');
  const redis = await findRedisServer();
  const env = {
    ...process.env,
    TURNKEEP_CHAOS_FOLDER: makeFolder(inState('chaos')),
    TURNKEEP_REDIS_SERVER: redis.command,
    ...(redis.libraryPath ? { TURNKEEP_REDIS_LD_LIBRARY_PATH: redis.libraryPath } : {}),
  };
  const args = ['--import', 'tsx', '--conditions=turnkeep-source', 'chaos/main.ts', ...process.argv.slice(2)];
  child = spawn(process.execPath, args, {
    cwd: root,
    env,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    detached: true,
  });
  child.on('message', (note) => {
    if (note.process) {
      noted.push(note.process);
      record.addProcess(note.process);
    }
    if (note.folder) record.addFolder(note.folder);
  });
  const [code] = await once(child, 'exit');
  process.exitCode = code ?? 1;
  await endWhatIsLeft(child.pid);
} catch (error) {
  sayError(error);
  process.exitCode = 1;
} finally {
  record?.close();
}

/** A run that failed may have left processes: those of its group, and Postgres, which has one of its own. */
async function endWhatIsLeft(group) {
  try {
    process.kill(-group, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
  for (const one of noted.reverse()) await end(one);
}
