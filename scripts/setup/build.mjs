import { exclusively } from './exclusive.mjs';
import { inRoot, root } from './paths.mjs';
import { run } from './run.mjs';
import { SetupError, say } from './say.mjs';

/**
 * Compiles all packages; what has not changed is not compiled again.
 * @param {{andCheckTests?: boolean}} options with the types of tests, bench and scripts, which are not compiled
 */
export async function build({ andCheckTests = false } = {}) {
  const projects = ['tsconfig.json', ...(andCheckTests ? ['tsconfig.checks.json'] : [])];
  const { code, output } = await exclusively('build', () =>
    run(process.execPath, [inRoot('node_modules', 'typescript', 'bin', 'tsc'), '-b', ...projects], { cwd: root }),
  );
  if (code === 0) return;
  say(output);
  throw new SetupError('The build failed: the type errors stand above.');
}
