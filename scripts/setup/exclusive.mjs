import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { inState, makeStateFolder } from './paths.mjs';
import { isAlive } from './processes.mjs';

/**
 * Runs `work` while no other command in this clone does the same thing (`npm start` and `npm test` may be
 * started together on a fresh clone). A holder that died is taken for gone.
 * @param {string} name what is exclusive, e.g. `install`
 */
export async function exclusively(name, work) {
  makeStateFolder();
  const lock = inState(`${name}.lock`);
  while (!take(lock)) await delay(200);
  try {
    return await work();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

function take(lock) {
  try {
    mkdirSync(lock);
    writeFileSync(`${lock}/pid`, String(process.pid));
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    if (isAbandoned(lock)) rmSync(lock, { recursive: true, force: true });
    return false;
  }
}

function isAbandoned(lock) {
  try {
    const pid = Number(readFileSync(`${lock}/pid`, 'utf8'));
    return pid > 0 && !isAlive(pid);
  } catch {
    return ageMs(lock) > 5000; // Else it is being taken this very moment, or was just let go.
  }
}

function ageMs(lock) {
  return Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
}
