import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { exclusively } from './exclusive.mjs';
import { inState } from './paths.mjs';
import { lastLine, run } from './run.mjs';
import { SetupError, say } from './say.mjs';

const howToGetOne =
  'Redis 7 (or Valkey) is missing: install it (e.g. `apt install redis-server`, `brew install redis`) or, for npm start, set REDIS_URL, and run this again.';

/**
 * The Redis server to run: of the PATH; else, on Debian and Ubuntu, the distribution's own package, unpacked into
 * `.turnkeep/redis-dist` without root and without installing anything.
 * @returns {Promise<{command: string, libraryPath?: string, origin: string}>}
 */
export async function findRedisServer() {
  return (await onPath()) ?? (await unpacked()) ?? (await exclusively('redis', fetchServer));
}

/** The environment in which a found server runs. */
export function redisEnvironment({ libraryPath }) {
  return libraryPath ? { ...process.env, LD_LIBRARY_PATH: libraryPath } : process.env;
}

async function onPath() {
  for (const name of ['redis-server', 'valkey-server'])
    for (const folder of (process.env.PATH ?? '').split(path.delimiter)) {
      const command = path.join(folder, name);
      if (folder && existsSync(command) && (await isNewEnough({ command }))) return { command, origin: command };
    }
}

async function unpacked(folder = inState('redis-dist')) {
  const command = path.join(folder, 'usr', 'bin', 'redis-server');
  if (!existsSync(command)) return undefined;
  const server = {
    command,
    libraryPath: libraryFolders(folder).join(':'),
    origin: 'the package of this system, unpacked',
  };
  return (await isNewEnough(server)) ? server : undefined;
}

async function isNewEnough(server) {
  const { code, output } = await run(server.command, ['--version'], { env: redisEnvironment(server) });
  const version = Number(/ v=(\d+)\./.exec(output)?.[1] ?? 0);
  return code === 0 && version >= 7;
}

function libraryFolders(folder) {
  return ['usr/lib', 'lib'].flatMap((name) => {
    const parent = path.join(folder, name);
    if (!existsSync(parent)) return [];
    const triplets = readdirSync(parent, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return triplets.map((entry) => path.join(parent, entry.name));
  });
}

async function fetchServer() {
  const there = await unpacked(); // By another command, while we waited.
  if (there) return there;
  if ((await run('apt-get', ['--version'])).code !== 0 || (await run('dpkg-deb', ['--version'])).code !== 0)
    throw new SetupError(howToGetOne);
  say('Fetching Redis from the packages of this system…');
  const folder = inState('redis-dist');
  const unfinished = `${folder}.new`;
  const tried = (await fetchWith(unfinished, [])) ?? (await fetchWith(unfinished, await freshLists()));
  rmSync(inState('apt'), { recursive: true, force: true });
  if (!tried) throw new SetupError(howToGetOne);
  rmSync(folder, { recursive: true, force: true });
  renameSync(unfinished, folder);
  const server = await unpacked();
  if (server) return server;
  throw new SetupError(`The Redis of this system's packages does not run here or is older than 7. ${howToGetOne}`);
}

/** Downloads and unpacks redis-server and whatever it needs that this system lacks; undefined: not with these lists. */
async function fetchWith(folder, options) {
  const plan = await run('apt-get', [
    ...options,
    '-o',
    'Debug::NoLocking=1',
    '-s',
    '--no-install-recommends',
    'install',
    'redis-server',
  ]);
  const names = [...plan.output.matchAll(/^Inst (\S+) /gm)].map((match) => match[1]);
  if (plan.code !== 0 || names.length === 0) return undefined;
  const downloads = path.join(folder, 'downloads');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(downloads, { recursive: true });
  // As root, apt would download as a user of its own, who may not be able to write here.
  const got = await run('apt-get', [...options, '-o', 'APT::Sandbox::User=root', 'download', ...names], {
    cwd: downloads,
  });
  if (got.code !== 0) return undefined;
  for (const file of readdirSync(downloads)) {
    const { code, output } = await run('dpkg-deb', ['-x', path.join(downloads, file), folder]);
    if (code !== 0) throw new SetupError(`Redis could not be unpacked: ${lastLine(output)}`);
  }
  rmSync(downloads, { recursive: true });
  return true;
}

/** Package lists of our own: a fresh machine has none, and an ordinary user may not update the system's. */
async function freshLists() {
  const folder = inState('apt');
  for (const name of ['lists/partial', 'cache/archives/partial'])
    mkdirSync(path.join(folder, name), { recursive: true });
  const options = [
    ...['-o', `Dir::State::lists=${folder}/lists`, '-o', `Dir::Cache=${folder}/cache`],
    ...['-o', 'Debug::NoLocking=1', '-o', 'APT::Sandbox::User=root'],
  ];
  await run('apt-get', [...options, 'update']); // Where it fails, so does the plan that follows.
  return options;
}
