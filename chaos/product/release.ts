import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPOSITORY } from '../../test/support/environment.js';
import type { Patch } from './broken.js';

const PACKAGES = ['shared', 'api', 'worker', 'web', 'client'];

/** The compiled product that a run tests. */
export interface Release {
  readonly main: string;
  readonly worker: string;
  readonly migrate: string;
}

/**
 * Copies the compiled product into `folder`, so that nobody's build changes it during the run, and applies patches to
 * the copy.
 * @throws Error where a patch does not find its text exactly once: the product has changed, and the patch must too
 */
export function copyRelease(folder: string, patches: readonly Patch[]): Release {
  mkdirSync(join(folder, 'packages'), { recursive: true });
  symlinkSync(join(REPOSITORY, 'node_modules'), join(folder, 'node_modules'));
  for (const name of PACKAGES) {
    const from = join(REPOSITORY, 'packages', name);
    const to = join(folder, 'packages', name);
    if (!existsSync(join(from, 'dist'))) continue;
    const parts = readdirSync(from).filter((part) => part !== 'src' && part !== 'test');
    for (const part of parts) cpSync(join(from, part), join(to, part), { recursive: true, verbatimSymlinks: true });
  }
  for (const patch of patches) apply(folder, patch);
  return {
    main: join(folder, 'packages/api/dist/main.js'),
    worker: join(folder, 'packages/worker/dist/main.js'),
    migrate: join(folder, 'packages/shared/dist/db/migrate.js'),
  };
}

function apply(folder: string, { file, find, replace }: Patch): void {
  const path = join(folder, 'packages', file);
  const text = readFileSync(path, 'utf8');
  const parts = text.split(find);
  if (parts.length !== 2) throw new Error(`The patch of ${file} finds its text ${parts.length - 1} times: ${find}`);
  writeFileSync(path, parts.join(replace));
}
