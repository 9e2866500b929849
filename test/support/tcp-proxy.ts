import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/**
 * A way to Postgres or Redis that holds back what a process says for `delayMs`, and can be cut: what was held back is
 * then never said. So a test can take a database away from one process, or kill it between a commit in Postgres and
 * its announcement in Redis.
 */
export class TcpProxy {
  readonly #target: URL;
  readonly #delayMs: number;
  readonly #answersDelayMs: number;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #cut = false;

  /**
   * @param target the address, as `TEST_REDIS_URL` or a database's URL has it
   * @param delayMs how long what the process says is held back
   * @param answersDelayMs the same for what it is answered: a cut then loses the answer to what was done
   */
  constructor(target: string, delayMs = 0, answersDelayMs = 0) {
    this.#target = new URL(target);
    this.#delayMs = delayMs;
    this.#answersDelayMs = answersDelayMs;
  }

  async start(): Promise<this> {
    const server = createServer((socket) => this.#relay(socket));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    this.#server = server;
    return this;
  }

  /** The address of the target by this way. */
  get url(): string {
    const address = this.#server?.address() as AddressInfo;
    const url = new URL(this.#target);
    url.hostname = '127.0.0.1';
    url.port = String(address.port);
    return url.href;
  }

  /** From now on nothing comes through, not even what was said before and held back; connections break. */
  cut(): void {
    this.#cut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  /** New connections come through again. */
  restore(): void {
    this.#cut = false;
  }

  async stop(): Promise<void> {
    this.cut();
    const server = this.#server;
    if (server !== undefined) await new Promise((resolve) => server.close(resolve));
  }

  #relay(inner: Socket): void {
    if (this.#cut) return void inner.destroy();
    const outer = connect(Number(this.#target.port), this.#target.hostname);
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
    inner.on('data', (bytes) => this.#pass(outer, bytes, this.#delayMs));
    outer.on('data', (bytes) => this.#pass(inner, bytes, this.#answersDelayMs));
  }

  #pass(to: Socket, bytes: Buffer, afterMs: number): void {
    const write = () => void (to.destroyed || to.write(bytes));
    if (afterMs === 0) write();
    else setTimeout(write, afterMs);
  }
}
