import { deferred, within } from './deadline.js';

/**
 * A point at which a scripted server waits: `reached` tells the test that everything before it has been written,
 * `open` lets the server go on. One gate serves one passage at a time; opened, it stays open.
 */
export class Gate {
  readonly #reached = deferred();
  readonly #opened = deferred();

  /** Resolves once the server stands here. */
  reached(): Promise<void> {
    return within(this.#reached.promise, () => 'nobody came to the gate');
  }

  open(): void {
    this.#opened.resolve();
  }

  /** The server's side: announces itself and waits until the gate opens or `gone` resolves. */
  async pass(gone: Promise<unknown>): Promise<void> {
    this.#reached.resolve();
    await Promise.race([this.#opened.promise, gone]);
  }
}

export function gate(): Gate {
  return new Gate();
}
