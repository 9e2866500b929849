/** Tells the command that started the run of a process, so that it can end it where the run is killed. */
export function noteProcess(child: { pid: number; marker: string }): void {
  process.send?.({ process: child });
}

/** Tells it of a folder that goes with the run. */
export function noteFolder(folder: string): void {
  process.send?.({ folder });
}
