import { chownSync, existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { launch } from './launch.mjs';
import { makeFolder, writePrivateFile } from './paths.mjs';
import { lastLine, run } from './run.mjs';
import { SetupError } from './say.mjs';

const major = '18';

/** For data that may go with the run: nothing waits for the disk. */
const throwAway = [
  'fsync=off',
  'synchronous_commit=off',
  'full_page_writes=off',
  'max_connections=400',
  'autovacuum_naptime=10s',
];

/**
 * Starts a Postgres of our own on 127.0.0.1, making its data folder first where there is none.
 * @param {object} options
 * @param {{binaries: string, owner?: {uid: number, gid: number}}} options.place see `postgresPlace`
 * @param {string} options.dataFolder
 * @param {number} options.port
 * @param {string} options.password of the superuser `postgres`
 * @param {boolean} options.durable false: for tests, without fsync
 * @param {string[]} [options.settings] more settings, `name=value`
 * @param {string} options.logFile
 * @param {{addProcess: Function}} options.record see `openRecord`
 * @returns {Promise<{url: (database: string) => string, exited: Promise<string>, stop: () => Promise<void>}>}
 */
export async function startPostgres(options) {
  const { place, dataFolder, port, password, record, logFile } = options;
  if (!existsSync(path.join(dataFolder, 'PG_VERSION'))) await initialise(options);
  checkVersion(dataFolder);
  const own = options.durable ? ['max_connections=300'] : throwAway;
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', ...own, ...(options.settings ?? [])];
  const service = await launch({
    name: 'Postgres',
    command: path.join(place.binaries, 'postgres'),
    args: ['-D', dataFolder, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])],
    ...place.owner,
    env: environment(),
    cwd: dataFolder,
    logFile,
    onSpawn: (pid) => record.addProcess({ pid, marker: dataFolder, signal: 'SIGINT' }),
    ready: (line) => (line.includes('database system is ready to accept connections') ? true : undefined),
  });
  return {
    url: (database) => `postgres://postgres:${password}@127.0.0.1:${port}/${database}`,
    exited: service.exited,
    // SIGINT is Postgres' fast shutdown: connections are ended, and all is written.
    stop: () => service.stop('SIGINT', 20_000),
  };
}

/** Makes the cluster under another name first: an initdb that was killed leaves nothing that looks whole. */
async function initialise({ place, dataFolder, password, durable }) {
  const unfinished = `${dataFolder}.new`;
  const passwordFile = `${dataFolder}.password`;
  rmSync(unfinished, { recursive: true, force: true });
  makeFolder(unfinished, 0o700);
  writePrivateFile(passwordFile, password);
  if (place.owner) for (const file of [unfinished, passwordFile]) chownSync(file, place.owner.uid, place.owner.gid);
  const { code, output } = await run(
    path.join(place.binaries, 'initdb'),
    [
      `--pgdata=${unfinished}`,
      '--username=postgres',
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      // The locale that Postgres brings itself: the same on every machine.
      ...['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
      ...(durable ? [] : ['--no-sync']),
    ],
    { ...place.owner, env: environment(), cwd: unfinished },
  );
  rmSync(passwordFile, { force: true });
  if (code !== 0) throw new SetupError(`Postgres could not make its data folder: ${firstError(output)}`);
  renameSync(unfinished, dataFolder);
}

function checkVersion(dataFolder) {
  const version = readFileSync(path.join(dataFolder, 'PG_VERSION'), 'utf8').trim();
  if (version !== major)
    throw new SetupError(
      `${dataFolder} was made by Postgres ${version}, and this is ${major}: move the folder away to begin anew.`,
    );
}

/** Ours, without the variables by which a Postgres of the machine is configured (PGDATA, PGPORT and so on). */
function environment() {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('PG'));
  return { ...Object.fromEntries(kept), LC_ALL: 'C' };
}

function firstError(output) {
  const line = output.split('\n').find((text) => /error|fatal/i.test(text));
  return line?.trim() ?? lastLine(output);
}
