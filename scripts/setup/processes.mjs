import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Does a process with this id exist (another user's included)? */
export function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/**
 * Is this process the one that we noted, and not a later one which got its id?
 * @param {{pid: number, marker: string}} noted `marker` is a part of its command line
 */
export function isSame({ pid, marker }) {
  return isAlive(pid) && commandLine(pid).includes(marker);
}

function commandLine(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return spawnSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' }).stdout ?? '';
  }
}

/**
 * Ends a process that was noted by an earlier command: with its signal, then, after `graceMs`, by force.
 * @param {{pid: number, marker: string, signal?: NodeJS.Signals, group?: boolean}} noted `group`: with all of its
 *   process group
 */
export async function end(noted, graceMs = 10_000) {
  const giveUpAt = Date.now() + graceMs;
  if (!isSame(noted)) return;
  const target = noted.group ? -noted.pid : noted.pid;
  process.kill(target, noted.signal ?? 'SIGTERM');
  // It is no child of ours, so its end cannot be waited for but by looking.
  while (isSame(noted)) {
    if (Date.now() > giveUpAt) process.kill(target, 'SIGKILL');
    await delay(50);
  }
}
