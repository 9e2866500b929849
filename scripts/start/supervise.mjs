import { setTimeout as delay } from 'node:timers/promises';
import { launch } from '../setup/launch.mjs';
import { root } from '../setup/paths.mjs';
import { say } from '../setup/say.mjs';

/** Waits before a restart: doubled each time that a process dies soon again. */
const firstWaitMs = 1000;
const longestWaitMs = 30_000;
const provenMs = 60_000;

/**
 * Starts one of our processes and, should it die, starts it again, as a process manager would.
 * @param {object} part
 * @param {string} part.name e.g. `main 1`
 * @param {string} part.script absolute
 * @param {NodeJS.ProcessEnv} part.env
 * @param {string} part.logFile
 * @param {{addProcess: Function}} part.record see `openRecord`
 * @returns {Promise<{port: number, stop: (signal?: NodeJS.Signals) => Promise<void>}>} when it listens for the first time
 * @throws {SetupError} when it does not come up
 */
export async function supervise(part) {
  const stopping = new AbortController();
  let current = await start(part, false);
  const { port } = current;
  const watching = watch();
  return { port, stop };

  async function watch() {
    let waitMs = firstWaitMs;
    while (!stopping.signal.aborted) {
      const startedAt = Date.now();
      const reason = current ? await current.exited : 'it did not start';
      if (stopping.signal.aborted) return;
      waitMs = Date.now() - startedAt > provenMs ? firstWaitMs : waitMs;
      say(`${part.name} ended (${reason}); it starts again in ${waitMs / 1000} s. Its log: ${part.logFile}`);
      await delay(waitMs, undefined, { signal: stopping.signal }).catch(() => {});
      if (stopping.signal.aborted) return;
      waitMs = Math.min(waitMs * 2, longestWaitMs);
      current = await start(part, true).catch(() => undefined);
      if (current && !stopping.signal.aborted) say(`${part.name} is up again.`);
    }
  }

  /** Lets it finish: it ends its turns within its own grace. Called again: at once. */
  async function stop(signal = 'SIGTERM') {
    stopping.abort();
    await current?.stop(signal, graceMs(part.env) + 5000);
    await watching;
    await current?.stop('SIGKILL');
  }
}

async function start({ name, script, env, logFile, record }, again) {
  const service = await launch({
    name,
    command: process.execPath,
    args: [script],
    env,
    cwd: root,
    logFile,
    append: again,
    onSpawn: (pid) => record.addProcess({ pid, marker: script }),
    ready: portOfStartLine,
  });
  return { ...service, port: service.value };
}

function portOfStartLine(line) {
  try {
    const { msg, port } = JSON.parse(line);
    return msg === 'listening' && typeof port === 'number' ? port : undefined;
  } catch {
    return undefined;
  }
}

function graceMs(env) {
  return Number(env.SHUTDOWN_GRACE_MS) || 30_000;
}
