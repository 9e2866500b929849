import { readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { inState, makeFolder, writePrivateFile } from './paths.mjs';
import { end, isSame } from './processes.mjs';

/**
 * What a running command has started, on disk: so that the next one can clear away what a command left that
 * was killed (SIGKILL, power) before it could do so itself. Written right after each process starts.
 *
 * @param {string} kind `start`, `test` or `bench`
 */
export function openRecord(kind) {
  const file = path.join(makeFolder(inState('running'), 0o700), `${kind}-${process.pid}.json`);
  const record = { pid: process.pid, marker: `${kind}.mjs`, children: [], folders: [] };
  const save = () => writePrivateFile(file, JSON.stringify(record));
  save();
  return {
    /** @param {{pid: number, marker: string, signal?: string, group?: boolean}} child see `end` */
    addProcess(child) {
      record.children.push(child);
      save();
    },
    /** A folder that goes when the command is over. */
    addFolder(folder) {
      record.folders.push(folder);
      save();
    },
    /** Removes the folders and the record; the processes have been stopped by then. */
    close() {
      removeFolders(record);
      rmSync(file, { force: true });
    },
  };
}

/** Ends the processes and removes the folders of commands of this kind which are no longer there. */
export async function clearLeftovers(kind) {
  for (const { file, record } of readRecords(kind)) {
    if (isSame(record)) continue;
    for (const child of record.children.reverse()) await end(child);
    removeFolders(record);
    rmSync(file, { force: true });
  }
}

/** The process id of a command of this kind that runs in this clone now, besides this one. */
export function runningCommand(kind) {
  return readRecords(kind).find(({ record }) => isSame(record) && record.pid !== process.pid)?.record.pid;
}

function removeFolders(record) {
  for (const folder of record.folders) rmSync(folder, { recursive: true, force: true });
}

function readRecords(kind) {
  const folder = makeFolder(inState('running'), 0o700);
  const names = readdirSync(folder).filter((name) => name.startsWith(`${kind}-`) && name.endsWith('.json'));
  return names.flatMap((name) => {
    const file = path.join(folder, name);
    try {
      return [{ file, record: JSON.parse(readFileSync(file, 'utf8')) }];
    } catch {
      return []; // Removed this moment by its own command.
    }
  });
}
