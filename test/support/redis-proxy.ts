import type { AddressInfo } from 'node:net';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { required } from './environment.js';

/**
 * A way to the shared Redis that holds back what a process says for `delayMs`, and can be cut: what was held back is
 * then never said. So a test can kill a process after a commit in Postgres and before its announcement in Redis.
 */
export class RedisProxy {
  readonly #target = new URL(required('TEST_REDIS_URL'));
  readonly #sockets = new Set<Socket>();
  readonly #delayMs: number;
  #server: Server | undefined;
  #cut = false;

  constructor(delayMs: number) {
    this.#delayMs = delayMs;
  }

  async start(): Promise<this> {
    const server = createServer((socket) => this.#relay(socket));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    this.#server = server;
    return this;
  }

  /** The address of the same Redis database by this way. */
  url(direct: string): string {
    const url = new URL(direct);
    const address = this.#server?.address() as AddressInfo;
    url.port = String(address.port);
    return url.href;
  }

  /** From now on nothing comes through, not even what was said before and held back. */
  cut(): void {
    this.#cut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.cut();
    const server = this.#server;
    if (server !== undefined) await new Promise((resolve) => server.close(resolve));
  }

  #relay(inner: Socket): void {
    if (this.#cut) return void inner.destroy();
    const outer = connect(Number(this.#target.port || 6379), this.#target.hostname);
    for (const socket of [inner, outer]) {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      // Either side's end ends both; their errors say no more than that.
      socket.on('error', () => {});
      socket.on('close', () => {
        this.#sockets.delete(socket);
        inner.destroy();
        outer.destroy();
      });
    }
    inner.on('data', (bytes) => void setTimeout(() => this.#pass(outer, bytes), this.#delayMs));
    outer.on('data', (bytes) => this.#pass(inner, bytes));
  }

  #pass(to: Socket, bytes: Buffer): void {
    if (!this.#cut && !to.destroyed) to.write(bytes);
  }
}
