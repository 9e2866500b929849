import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { exclusively } from './exclusive.mjs';
import { inRoot, inState, makeStateFolder, root } from './paths.mjs';
import { lastLine, run } from './run.mjs';
import { SetupError, say } from './say.mjs';

const pnpm = 'pnpm@12.4.2';
const stamp = inRoot('node_modules', '.turnkeep-stamp');

/**
 * Installs the dependencies of the lockfile, unless that was done for this very lockfile before.
 * @param {(text: string) => void} note told whether there was anything to do
 */
export async function installDependencies(note) {
  checkMachine();
  makeStateFolder();
  await exclusively('install', async () => {
    const wanted = fingerprint();
    if (readStamp() === wanted) return note('up to date');
    say(
      existsSync(stamp) ? 'Updating the dependencies…' : 'Installing the dependencies, a minute or two the first time…',
    );
    await install();
    writeFileSync(stamp, wanted);
    note('installed');
  });
}

function checkMachine() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19))
    throw new SetupError(
      `Node ${process.versions.node} is too old: Turnkeep needs 20.19 or newer (22 and newer is recommended).`,
    );
  if (process.platform === 'win32')
    throw new SetupError('Windows is not supported directly: run this in WSL (Windows Subsystem for Linux).');
}

async function install() {
  const args = ['-y', pnpm, 'install', '--frozen-lockfile', '--config.confirmModulesPurge=false'];
  const { code, output } = await run('npx', args, { cwd: root, env: environment() });
  if (code === 127) throw new SetupError('npx is missing: install npm, which brings it, and run this again.');
  if (code === 0) return;
  const log = inState('logs', 'install.log');
  writeFileSync(log, output);
  throw new SetupError(
    `The dependencies could not be installed: ${reasonOf(output)} (all of it: ${path.relative(root, log)})`,
  );
}

/** Without the command of an npx that runs us: ours would take it for its own. */
function environment() {
  const { npm_config_call, npm_config_package, ...rest } = process.env;
  return rest;
}

function reasonOf(output) {
  if (output.includes('ERR_PNPM_OUTDATED_LOCKFILE'))
    return `pnpm-lock.yaml does not fit the package.json files; bring it up to date with: npx ${pnpm} install`;
  if (/ENOSPC/.test(output)) return 'the disk is full';
  if (/ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNRESET/.test(output)) return 'the npm registry cannot be reached';
  const line = output.split('\n').find((text) => /ERR_|\berror\b/i.test(text));
  return line?.trim() ?? lastLine(output);
}

function readStamp() {
  return existsSync(stamp) ? readFileSync(stamp, 'utf8') : undefined;
}

/** Changes whenever an installation could come out differently. */
function fingerprint() {
  const packages = readdirSync(inRoot('packages')).map((name) => `packages/${name}/package.json`);
  const files = ['pnpm-lock.yaml', 'pnpm-workspace.yaml', 'package.json', 'bench/package.json', 'test/package.json'];
  const hash = createHash('sha256').update(process.versions.node.split('.')[0]);
  for (const file of [...files, ...packages.sort()])
    if (existsSync(inRoot(file))) hash.update(file).update(readFileSync(inRoot(file)));
  return hash.digest('hex');
}
