import { spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { lastLine } from './run.mjs';
import { SetupError } from './say.mjs';

/**
 * Starts a process that lives on, and waits until it says that it is up.
 * It gets a process group of its own: a Ctrl-C in the terminal reaches only us, and we stop it in our order.
 *
 * @param {object} service
 * @param {string} service.name for messages
 * @param {string} service.command
 * @param {string[]} service.args
 * @param {string} service.logFile its output goes there; what was there before is cut off
 * @param {(line: string) => unknown} service.ready called with each line of output; anything but undefined
 *   means that it is up
 * @param {(pid: number) => void} [service.onSpawn] called at once, before anything can go wrong
 * @param {boolean} [service.append] go on with the log instead of cutting it off
 * @param {string} [service.input] what it reads from standard input
 * @param {number} [service.timeoutMs]
 * @param {NodeJS.ProcessEnv} [service.env]
 * @param {string} [service.cwd]
 * @param {number} [service.uid]
 * @param {number} [service.gid]
 * @returns {Promise<Service>}
 * @throws {SetupError} when it ends, or says nothing, instead
 *
 * @typedef {object} Service
 * @property {number} pid
 * @property {unknown} value what `ready` returned
 * @property {Promise<string>} exited resolves with a reason, e.g. `signal SIGKILL`; never rejects
 * @property {(signal?: NodeJS.Signals, graceMs?: number) => Promise<void>} stop safe twice; after the grace, by force
 */
export async function launch(service) {
  const { command, args, env, cwd, uid, gid, timeoutMs = 60_000 } = service;
  const child = spawn(command, args, {
    ...definedOnly({ env, cwd, uid, gid }),
    detached: true,
    stdio: [service.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  if (child.pid) service.onSpawn?.(child.pid);
  child.stdin?.on('error', () => {}).end(service.input);
  const exited = new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(signal ? `signal ${signal}` : `exit code ${code}`));
  });
  const allRead = new Promise((resolve) => child.once('close', resolve).once('error', resolve));
  const output = watchOutput(child, service);
  const late = AbortSignal.timeout(timeoutMs);
  const timedOut = new Promise((resolve) => late.addEventListener('abort', resolve, { once: true }));
  const outcome = await Promise.race([
    output.up.then((value) => ({ value })),
    Promise.all([exited, allRead]).then(([reason]) => ({ reason: lastLine(output.tail()) || reason })),
    timedOut.then(() => ({ reason: `it did not say that it is up within ${timeoutMs / 1000} s` })),
  ]);
  const stop = makeStop(child, exited);
  if ('value' in outcome) return { pid: child.pid, value: outcome.value, exited, stop };
  await stop('SIGKILL');
  throw new SetupError(`${service.name} did not start: ${readable(outcome.reason)} (its log: ${service.logFile})`);
}

function watchOutput(child, { ready, logFile, append }) {
  const log = createWriteStream(logFile, { mode: 0o600, flags: append ? 'a' : 'w' }).on('error', () => {});
  let recent = [];
  let isUp = false;
  const up = new Promise((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.pipe(log, { end: false });
      createInterface({ input: stream }).on('line', (line) => {
        if (isUp) return;
        recent = [...recent.slice(-19), line];
        const value = ready(line);
        if (value === undefined) return;
        isUp = true;
        resolve(value);
      });
    }
  });
  child.once('close', () => log.end());
  return { up, tail: () => recent.join('\n') };
}

function makeStop(child, exited) {
  return async (signal = 'SIGTERM', graceMs = 10_000) => {
    if (child.exitCode !== null || child.signalCode !== null || !child.pid) return;
    child.kill(signal);
    const timer = new AbortController();
    const overdue = delay(graceMs, 'overdue', { signal: timer.signal }).catch(() => {});
    if ((await Promise.race([exited, overdue])) === 'overdue') child.kill('SIGKILL');
    timer.abort();
    await exited;
  };
}

/** The message of a JSON log line; any other line as it is. */
function readable(line) {
  try {
    const { msg, err, error = err } = JSON.parse(line);
    return error?.message ? `${msg}: ${error.message}` : (msg ?? line);
  } catch {
    return line;
  }
}

function definedOnly(options) {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
