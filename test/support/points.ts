import type { WorkerPoint } from '../../packages/worker/src/worker.js';
import { deferred, within } from './deadline.js';
import { ProductProcess } from './processes.js';

/** What a parent orders: hold, or die, at the nth time that this point is reached from now on. */
export interface Order {
  readonly kind: 'hold' | 'kill';
  readonly id: string;
  readonly point: WorkerPoint;
  readonly nth: number;
}

export interface FromWorker {
  readonly kind: 'armed' | 'held';
  readonly id: string;
}

/** A worker that stands still at a point until it is released. */
export interface HeldPoint {
  /** Resolves once the worker stands there. */
  reached(): Promise<void>;
  release(): void;
}

const ARGS = ['--enable-source-maps', '--import=tsx', '--conditions=turnkeep-source', 'test/support/pointed-worker.ts'];

/** A real worker, from the sources, that this process can hold or kill at the named points of a turn. */
export class PointedWorker extends ProductProcess {
  readonly #notices = new Map<string, () => void>();
  #count = 0;

  constructor(name: string, env: Record<string, string>) {
    super('worker', name, env, ARGS, ['ignore', 'pipe', 'pipe', 'ipc']);
    this.child.on('message', ({ kind, id }: FromWorker) => this.#notices.get(`${kind} ${id}`)?.());
  }

  /** From now on the worker stands still at the `nth` passage of this point, until it is released. */
  async hold(point: WorkerPoint, nth = 1): Promise<HeldPoint> {
    const id = this.#newId();
    const held = this.#notice(`held ${id}`);
    await this.#order({ kind: 'hold', id, point, nth });
    return {
      reached: () => within(held, () => `${this.name} did not come to '${point}':\n${this.tail()}`),
      release: () => void (this.alive && this.child.send({ kind: 'release', id })),
    };
  }

  /** From now on the worker dies, as by `kill -9`, at the `nth` passage of this point. */
  async killAt(point: WorkerPoint, nth = 1): Promise<void> {
    await this.#order({ kind: 'kill', id: this.#newId(), point, nth });
  }

  #newId(): string {
    this.#count += 1;
    return String(this.#count);
  }

  #notice(key: string): Promise<void> {
    const { promise, resolve } = deferred();
    this.#notices.set(key, resolve);
    return promise;
  }

  async #order(order: Order): Promise<void> {
    const armed = this.#notice(`armed ${order.id}`);
    this.child.send(order);
    await within(armed, () => `${this.name} did not take an order`);
  }
}
