import { launch } from './launch.mjs';
import { makeFolder } from './paths.mjs';
import { redisEnvironment } from './redis-server.mjs';

/**
 * Starts a Redis of our own on 127.0.0.1.
 * @param {object} options
 * @param {{command: string, libraryPath?: string}} options.server see `findRedisServer`
 * @param {string} options.folder its data
 * @param {number} options.port
 * @param {boolean} options.durable true: an append-only file, written to disk every second; false: memory only
 * @param {string} [options.password]
 * @param {string} options.logFile
 * @param {{addProcess: Function}} options.record see `openRecord`
 * @returns {Promise<{url: string, exited: Promise<string>, stop: () => Promise<void>}>}
 */
export async function startRedis({ server, folder, port, durable, password, logFile, record }) {
  makeFolder(folder, 0o700);
  const service = await launch({
    name: 'Redis',
    command: server.command,
    args: ['-'],
    // By standard input, so that the password stands in no list of processes.
    input: configuration({ port, durable, password }),
    env: redisEnvironment(server),
    cwd: folder,
    logFile,
    onSpawn: (pid) => record.addProcess({ pid, marker: `127.0.0.1:${port}` }),
    ready: (line) => (/ready to accept connections/i.test(line) ? true : undefined),
  });
  return {
    url: `redis://${password ? `:${password}@` : ''}127.0.0.1:${port}`,
    exited: service.exited,
    stop: () => service.stop('SIGTERM', 20_000),
  };
}

function configuration({ port, durable, password }) {
  const lines = [
    'bind 127.0.0.1',
    `port ${port}`,
    'databases 256',
    'maxmemory-policy noeviction', // BullMQ's and our keys must not vanish.
    'save ""',
    ...(durable ? ['appendonly yes', 'appendfsync everysec'] : ['appendonly no']),
    ...(password ? [`requirepass ${password}`] : []),
  ];
  return `${lines.join('\n')}\n`;
}
