import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** A process of the bench that listens on a port, or is ready without one. */
export interface Child {
  port: number;
  stop(): Promise<void>;
}

/**
 * Starts a module of the bench as a process of its own and waits until it says that it is ready.
 * @param module its path, from this folder
 * @param setup what it is told first; Buffers arrive as Buffers
 */
export async function startChild(module: string, setup: object | null = null): Promise<Child> {
  const child = fork(fileURLToPath(new URL(module, import.meta.url)), { serialization: 'advanced' });
  const ready = new Promise<number>((resolve, reject) => {
    child.once('message', (message: { port: number }) => resolve(message.port));
    child.once('exit', (code) => reject(new Error(`${module} ended with ${code} before it was ready`)));
  });
  if (setup) child.send(setup);
  return { port: await ready, stop: () => stop(child) };
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  // Its modules end when they are cut off from here, so that none is left behind where the bench dies.
  child.disconnect();
  await gone;
}
