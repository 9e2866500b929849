/** Tells the command that started the run of a process, so that it can end it where the run is killed. */
export function noteProcess(child: { pid: number; marker: string }): void {
  process.send?.({ process: child });
}

/** Tells it of a folder that goes with the run. */
export function noteFolder(folder: string): void {
  process.send?.({ folder });
}

/** Ends the run with all of its process group, at once: the command that started it is gone. The next one clears the rest. */
export function abandon(): never {
  try {
    process.kill(-process.pid, 'SIGKILL');
  } catch {
    // This process leads no group: it was started by hand.
  }
  process.exit(1);
}
