import { setMaxListeners } from 'node:events';
import type { Fault, History } from '../history.js';
import type { Random } from '../random.js';
import { now, sleep } from '../stage/clock.js';
import type { Stage } from '../stage/stage.js';
import { type Hand, PROCESS_FAULTS, STORE_FAULTS, WIRE_FAULTS } from './faults.js';

/** What of the nemesis works side by side: each hand has faults of its own, and rests between them. */
const HANDS = {
  processes: { faults: PROCESS_FAULTS, restMs: [400, 2_500] },
  stores: { faults: STORE_FAULTS, restMs: [2_500, 8_000] },
  wires: { faults: WIRE_FAULTS, restMs: [800, 5_000] },
} as const;

/** Breaks things, one fault after the other for each of its hands. Its seed decides what, whom and for how long. */
export class Nemesis {
  readonly #stage: Stage;
  readonly #history: History;
  readonly #random: Random;
  readonly #ending = new AbortController();
  #running: Promise<unknown> = Promise.resolve();

  constructor(stage: Stage, history: History, random: Random) {
    this.#stage = stage;
    this.#history = history;
    this.#random = random;
  }

  start(): void {
    setMaxListeners(0, this.#ending.signal);
    this.#running = Promise.all((Object.keys(HANDS) as (keyof typeof HANDS)[]).map((name) => this.#work(name)));
  }

  /**
   * Ends with one last blow, a Redis that comes back empty and a worker that dies, then repairs everything. Resolves when
   * all processes listen and nothing is broken any more.
   */
  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#running;
    const { stage } = this;
    const last = this.#random.fork('last blow').pick(stage.workers);
    await this.#fault('kill -9 of Redis, without its data', 'Redis', () => stage.redis.restart('empty'));
    await this.#fault('kill -9 of a worker', last.name, () => last.kill());
    await this.#heal();
    this.#history.quietAt = now();
  }

  get stage(): Stage {
    return this.#stage;
  }

  async #work(name: keyof typeof HANDS): Promise<void> {
    const { faults, restMs } = HANDS[name];
    const { signal } = this.#ending;
    const list = Object.entries(faults);
    for (let index = 0; !signal.aborted; index += 1) {
      const random = this.#random.fork(`${name} ${index}`);
      await sleep(random.between(restMs[0], restMs[1]), signal);
      if (signal.aborted) return;
      const [kind, prepare] = random.pick(list);
      const hand: Hand = { stage: this.#stage, history: this.#history, random, ended: signal };
      const { target, run } = prepare(hand);
      await this.#fault(kind, target, run);
    }
  }

  async #fault(kind: string, target: string, run: () => Promise<void>): Promise<void> {
    const fault: Fault = { kind, target, from: now(), to: null };
    this.#history.faults.push(fault);
    await run();
    fault.to = now();
  }

  async #heal(): Promise<void> {
    const slots = [...this.#stage.mains, ...this.#stage.workers];
    for (const { wires } of slots) for (const wire of Object.values(wires)) wire.restore();
    for (const wire of Object.values(this.#stage.outside)) wire.restore();
    await Promise.all([this.#stage.redis.heal(), this.#stage.postgres.heal()]);
    for (const slot of slots) slot.resume();
    await Promise.all(slots.map((slot) => slot.start()));
  }
}
