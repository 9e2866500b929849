import { setMaxListeners } from 'node:events';
import type { History } from '../history.js';
import type { Random } from '../random.js';
import { sleep } from '../stage/clock.js';
import type { Slot } from '../stage/slot.js';
import type { Chats } from './chats.js';
import { Client } from './client.js';
import { OPERATIONS, WEIGHTS } from './operations.js';

const CLIENTS = 10;
const PAUSE_MS = { min: 30, max: 250 };

/** All clients of a round. Operation `i` of client `c` is the same in each run with the same seed. */
export class Workload {
  readonly #clients: readonly Client[];
  readonly #chats: Chats;
  readonly #random: Random;
  readonly #ending = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  #left: number;
  /** Operations so far. */
  operations = 0;

  /**
   * @param name of the round: markers and keys begin with it
   * @param limit how many operations are made at most
   */
  constructor(
    private readonly name: string,
    history: History,
    chats: Chats,
    mains: readonly Slot[],
    random: Random,
    limit: number,
  ) {
    this.#clients = Array.from({ length: CLIENTS }, (_, index) => new Client(index, history, mains));
    this.#chats = chats;
    this.#random = random;
    this.#left = limit;
  }

  start(): void {
    setMaxListeners(0, this.#ending.signal);
    this.#running = Promise.all(this.#clients.map((client) => this.#run(client)));
  }

  /** Resolves when the limit is reached. */
  async finished(): Promise<void> {
    await this.#running;
  }

  /** Begins no further operation; resolves when all that were under way have their outcomes. */
  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#running;
  }

  /** Streams that are open now. */
  get streams(): number {
    return this.#clients.reduce((sum, client) => sum + client.streams, 0);
  }

  /** Leaves the streams that are open. */
  leave(): void {
    for (const client of this.#clients) client.leave();
  }

  async #run(client: Client): Promise<void> {
    const { signal } = this.#ending;
    for (let index = 0; !signal.aborted && this.#left > 0; index += 1) {
      this.#left -= 1;
      this.operations += 1;
      const random = this.#random.fork(`client ${client.number} operation ${index}`);
      const session = this.#chats.at(random.int(this.#chats.places));
      const operation = OPERATIONS[random.weighted(WEIGHTS)];
      const name = `${this.name}-${client.number}-${index}`;
      await operation({ client, chats: this.#chats, session, random, name, ended: signal });
      await sleep(random.between(PAUSE_MS.min, PAUSE_MS.max), signal);
    }
  }
}
