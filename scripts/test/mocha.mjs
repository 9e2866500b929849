import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { inRoot, root } from '../setup/paths.mjs';

/** Where tests stand. */
const everywhere = ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts'];

/**
 * Starts mocha in a process group of its own, which also holds what the tests start.
 * @param {string[]} args files, globs and mocha's own options; without a file: all tests
 * @param {Record<string, string>} env
 * @param {{folder: string, note: (child: object) => void}} services see `startThrowAway`
 * @returns {{finished: Promise<{passed: number, failed: number}>, stop: () => void}} `stop` ends the run after the
 *   test that runs now and its hooks; called again, at once
 */
export function startMocha(args, env, { folder, note }) {
  const report = path.join(folder, 'report.json');
  const isFile = (arg) => !arg.startsWith('-') && (arg.includes('.test.') || existsSync(inRoot(arg)));
  const files = args.some(isFile) ? [] : everywhere;
  const options = [
    '--reporter',
    inRoot('scripts', 'test', 'reporter.mjs'),
    ...(process.env.CI ? ['--forbid-pending'] : []),
  ];
  const child = spawn(
    process.execPath,
    [inRoot('node_modules', 'mocha', 'bin', 'mocha.js'), ...options, ...args, ...files],
    {
      cwd: root,
      env: { ...process.env, ...env, TURNKEEP_TEST_REPORT: report },
      stdio: ['ignore', 'inherit', 'inherit'],
      detached: true,
    },
  );
  note({ pid: child.pid, marker: 'mocha.js', group: true });
  const finished = new Promise((resolve) => {
    child.once('exit', (code) => {
      signalGroup(child.pid, 'SIGKILL'); // What the tests started and did not stop.
      resolve(outcome(report, code));
    });
  });
  let asked = false;
  const stop = () => {
    signalGroup(child.pid, asked ? 'SIGKILL' : 'SIGINT');
    asked = true;
    setTimeout(() => signalGroup(child.pid, 'SIGKILL'), 10_000).unref();
  };
  return { finished, stop };
}

function signalGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

/** The counts; a run that did not come to its end, or failed without a failed test, is a failure too. */
function outcome(report, code) {
  const { passed, failed } = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : { passed: 0, failed: 0 };
  return { passed, failed: code === 0 ? failed : Math.max(failed, 1) };
}
