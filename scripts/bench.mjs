// `npm run bench`: sets up what the bench needs (a Postgres that writes to disk as a real one does), builds, and
// runs `bench/main.ts`. Extra arguments go to it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { build } from './setup/build.mjs';
import { installDependencies } from './setup/dependencies.mjs';
import { onInterrupt } from './setup/interrupts.mjs';
import { root } from './setup/paths.mjs';
import { sayError, step } from './setup/say.mjs';
import { startThrowAway } from './setup/throw-away.mjs';

let child;
onInterrupt(
  (signal) => child?.kill(signal),
  () => child?.kill('SIGKILL'),
);

let services;
try {
  await step('dependencies', installDependencies);
  await step('build', () => build());
  services = await startThrowAway({ kind: 'bench', durable: true });
  const args = ['--import', 'tsx', '--conditions=turnkeep-source', 'bench/main.ts', ...process.argv.slice(2)];
  child = spawn(process.execPath, args, { cwd: root, env: { ...process.env, ...services.env }, stdio: 'inherit' });
  const [code] = await once(child, 'exit');
  process.exitCode = code ?? 1;
} catch (error) {
  sayError(error);
  process.exitCode = 1;
} finally {
  await services?.stop();
}
