import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/**
 * The way from one process to another: a TCP proxy that the nemesis can cut (connections break, new ones are refused)
 * or freeze (connections stay and nothing comes through, as behind a firewall that drops packets).
 */
export class Wire {
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #target: URL;
  #state: 'whole' | 'cut' | 'frozen' = 'whole';

  /** @param target the address on the other side; its host and port are replaced in `url` */
  constructor(target: string) {
    this.#target = new URL(target);
  }

  async start(): Promise<this> {
    const server = createServer((socket) => this.#relay(socket));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    this.#server = server;
    return this;
  }

  /** The target's address by this way. It stays the same. */
  get url(): string {
    const address = this.#server?.address() as AddressInfo;
    const url = new URL(this.#target);
    url.hostname = '127.0.0.1';
    url.port = String(address.port);
    return url.href;
  }

  /** From now on connections lead there: a process that was restarted listens on another port. */
  aim(target: string): void {
    this.#target = new URL(target);
  }

  cut(): void {
    this.#state = 'cut';
    for (const socket of this.#sockets) socket.destroy();
  }

  freeze(): void {
    this.#state = 'frozen';
    for (const socket of this.#sockets) socket.pause();
  }

  restore(): void {
    this.#state = 'whole';
    for (const socket of this.#sockets) socket.resume();
  }

  async stop(): Promise<void> {
    this.cut();
    const server = this.#server;
    if (server) await new Promise((resolve) => server.close(resolve));
  }

  #relay(inner: Socket): void {
    if (this.#state === 'cut') return void inner.destroy();
    const outer = connect(Number(this.#target.port), this.#target.hostname);
    for (const socket of [inner, outer]) {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => {});
      socket.on('close', () => this.#sockets.delete(socket));
    }
    inner.on('data', (bytes) => void outer.write(bytes));
    outer.on('data', (bytes) => void inner.write(bytes));
    // Who asks and leaves is gone at once; what was answered before the other side closed still arrives.
    inner.on('close', () => outer.destroy());
    outer.on('end', () => inner.end());
    outer.on('close', (failed) => (failed ? inner.destroy() : inner.end()));
    if (this.#state === 'frozen') for (const socket of [inner, outer]) socket.pause();
  }
}
