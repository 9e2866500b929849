import type { ServerResponse } from 'node:http';
import type { Ctx } from '../http/context.js';

/** Bytes that wait for a reader before we wait for it. */
const HIGH_WATER = 256 * 1024;
/** How long a reader that does not read keeps its connection, in ms. It recovers by its cursor. */
const STALLED_MS = 30_000;

/**
 * One SSE response. It never buffers without bound: what writes asks `writable` first, and a reader that does not read
 * for 30 s is dropped.
 */
export class SseConnection {
  readonly #response: ServerResponse;
  readonly #onClose = new Set<() => void>();
  #closed = false;
  #ending = false;

  /** Sends the headers of section 4. From here on the response is ours alone. */
  constructor(ctx: Ctx) {
    ctx.respond = false;
    this.#response = ctx.res;
    this.#response.writeHead(200, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-cache, no-transform',
      'X-Accel-Buffering': 'no',
    });
    this.#response.flushHeaders();
    this.#response.socket?.setNoDelay(true);
    this.#response.once('close', () => this.#close());
    this.#response.on('error', () => this.#close());
    if (this.#response.destroyed || this.#response.socket?.destroyed) this.#close();
  }

  /** True where nothing can be sent any more. */
  get closed(): boolean {
    return this.#closed || this.#ending;
  }

  /** Calls `listener` once, when the connection has ended for whatever reason; at once where it has. */
  onClose(listener: () => void): void {
    if (this.#closed) listener();
    else this.#onClose.add(listener);
  }

  /** Sends an event without a cursor. */
  send(event: object): void {
    this.write(`data: ${JSON.stringify(event)}\n\n`);
  }

  /** Sends frames that are already in the form of SSE. After the end nothing is sent. */
  write(frames: string): void {
    if (!this.#closed && !this.#ending) this.#response.write(frames);
  }

  /** Sends a comment, which keeps proxies from closing a quiet connection. Skipped where the reader is behind anyway. */
  keepAlive(): void {
    if (this.#response.writableLength === 0) this.write(': keep-alive\n\n');
  }

  /** True where the reader keeps up. */
  get keepsUp(): boolean {
    return this.#response.writableLength < HIGH_WATER;
  }

  /** Waits until the reader keeps up. A reader that does not read for 30 s loses its connection. False: it is closed. */
  async writable(): Promise<boolean> {
    if (!this.#closed && !this.#ending && !this.keepsUp) await this.#drained();
    return !this.#closed && !this.#ending;
  }

  /** Ends the stream cleanly, after all that was written. */
  end(): void {
    if (this.#closed || this.#ending) return;
    this.#ending = true;
    this.#response.end();
    // A reader that does not take the end is not waited for.
    const timer = setTimeout(() => this.#response.destroy(), STALLED_MS);
    this.onClose(() => clearTimeout(timer));
  }

  async #drained(): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#response.off('drain', done);
        this.#onClose.delete(done);
        resolve();
      };
      const timer = setTimeout(() => this.#response.destroy(), STALLED_MS);
      this.#response.once('drain', done);
      this.onClose(done);
    });
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const listener of [...this.#onClose]) listener();
    this.#onClose.clear();
  }
}
