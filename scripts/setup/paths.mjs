import { chmodSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository's folder. */
export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');

/** Everything that the commands keep on this machine: databases, logs, secrets. */
export const stateFolder = path.join(root, '.turnkeep');

/** A path in the repository. */
export const inRoot = (...parts) => path.join(root, ...parts);

/** A path in `.turnkeep/`. */
export const inState = (...parts) => path.join(stateFolder, ...parts);

/** Makes a folder with its parents and gives it `mode`, whatever the umask. */
export function makeFolder(folder, mode = 0o755) {
  mkdirSync(folder, { recursive: true });
  chmodSync(folder, mode);
  return folder;
}

/**
 * Makes `.turnkeep/` and its folder of logs. `.turnkeep/` itself stays passable, since Postgres, started by
 * root, runs as a user of its own; what is private in it has its own mode.
 */
export function makeStateFolder() {
  mkdirSync(stateFolder, { recursive: true, mode: 0o755 });
  makeFolder(inState('logs'), 0o700);
}

/** Writes a file that only its owner may read, whole or not at all. */
export function writePrivateFile(file, text) {
  const unfinished = `${file}.${process.pid}.new`;
  writeFileSync(unfinished, text, { mode: 0o600 });
  renameSync(unfinished, file);
}
