import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { freePort } from './wire-server.js';

const program = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js');

/** The MCP project's own reference server, in a process of its own. */
export class ReferenceServer {
  #child: ChildProcess | undefined;
  #port = 0;

  get url(): string {
    return `http://127.0.0.1:${this.#port}/mcp`;
  }

  /** Resolves when the server listens; on the port that it had, where it is started again. */
  async start(): Promise<void> {
    if (this.#port === 0) this.#port = await freePort();
    const child = spawn(process.execPath, [program, 'streamableHttp'], {
      env: { ...process.env, NODE_OPTIONS: '', PORT: String(this.#port) },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#child = child;
    for await (const line of createInterface({ input: child.stderr! })) {
      if (line.includes('listening on port')) break;
    }
    if (child.exitCode !== null) throw new Error('The reference server did not start.');
    child.stderr!.resume();
  }

  /** Kills the server with all its sessions. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }
}
