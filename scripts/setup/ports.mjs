import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { writePrivateFile } from './paths.mjs';

/** A port of 127.0.0.1 that is free now, chosen by the kernel. */
export function freePort() {
  return tryPort(0);
}

/** Is this port of 127.0.0.1 free now? */
export async function isFree(port) {
  return (await tryPort(port)) === port;
}

/**
 * The port that this file remembers, where it is still free; else a new one, which is remembered.
 * So a database keeps its address from one start to the next.
 */
export async function rememberedPort(file) {
  const remembered = readPort(file);
  if (remembered && (await isFree(remembered))) return remembered;
  const port = await freePort();
  writePrivateFile(file, String(port));
  return port;
}

function readPort(file) {
  try {
    return Number(readFileSync(file, 'utf8'));
  } catch {
    return 0;
  }
}

function tryPort(port) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen(port, '127.0.0.1', () => {
      const taken = server.address().port;
      server.close(() => resolve(taken));
    });
  });
}
