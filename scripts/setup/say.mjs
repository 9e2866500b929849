import { performance } from 'node:perf_hooks';

/** What a person can put right: printed as the one line that it is, without a stack. */
export class SetupError extends Error {
  name = 'SetupError';
}

/** Prints one line. */
export function say(line) {
  process.stdout.write(`${line}\n`);
}

/**
 * Runs one step of a set-up and prints one line for it, with its time.
 * On a terminal the line shows while the step runs; elsewhere it is printed when the step is through.
 * @param {string} name what happens, e.g. `build`
 * @param {(note: (text: string) => void) => Promise<T> | T} work `note` adds a remark to the line
 * @returns {Promise<T>} what `work` returns
 * @template T
 */
export async function step(name, work) {
  const startedAt = performance.now();
  const live = process.stdout.isTTY === true;
  let remark = '';
  if (live) process.stdout.write(`  … ${name}`);
  try {
    const result = await work((text) => {
      remark = `: ${text}`;
    });
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    say(`${live ? '\r\x1b[K' : ''}  ✓ ${name}${remark} (${seconds} s)`);
    return result;
  } catch (error) {
    say(`${live ? '\r\x1b[K' : ''}  ✗ ${name}`);
    throw error;
  }
}

/** Prints an error as its reader needs it: one line where it is ours, the stack where it is a fault of ours. */
export function sayError(error) {
  if (error instanceof SetupError) process.stderr.write(`\n${error.message}\n`);
  else if (error?.code === 'EACCES' || error?.code === 'EPERM')
    process.stderr.write(
      `\nNo permission: ${error.path ?? error.message}. It may belong to another user; run as that user, or remove .turnkeep/ and node_modules/.\n`,
    );
  else process.stderr.write(`\n${error?.stack ?? error}\n`);
}
