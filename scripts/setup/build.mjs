import { existsSync } from 'node:fs';
import { exclusively } from './exclusive.mjs';
import { inRoot, root } from './paths.mjs';
import { run } from './run.mjs';
import { SetupError, say } from './say.mjs';

/**
 * Compiles all packages; what has not changed is not compiled again.
 * @param {string[]} also folders whose types are checked too where they have a tsconfig.json, e.g. `test`
 */
export async function build(also = []) {
  const projects = ['tsconfig.json', ...also.filter((folder) => existsSync(inRoot(folder, 'tsconfig.json')))];
  const { code, output } = await exclusively('build', () =>
    run(process.execPath, [inRoot('node_modules', 'typescript', 'bin', 'tsc'), '-b', ...projects], { cwd: root }),
  );
  if (code === 0) return;
  say(output);
  throw new SetupError('The build failed: the type errors stand above.');
}
