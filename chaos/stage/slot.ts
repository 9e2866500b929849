import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Exit, type Kind, ProductProcess } from '../../test/support/processes.js';
import { now, sleep } from './clock.js';
import { noteProcess } from './notes.js';
import { Wire } from './wire.js';

/** One process that filled a slot, from its start to its end. */
export interface Instance {
  readonly name: string;
  /** As `executions.worker_id` has it; empty for a main. */
  workerId: string;
  startedAt: number;
  /** When it was asked to stop. */
  stoppingAt: number | null;
  killedAt: number | null;
  endedAt: number | null;
  exit: Exit | null;
  /** The end of its log, where it ended by itself. */
  tail: string | null;
}

export interface SlotOptions {
  readonly kind: Kind;
  readonly name: string;
  /** The compiled entry of the process. */
  readonly entry: string;
  readonly postgresUrl: string;
  readonly redisUrl: string;
  readonly env: Record<string, string>;
  /** Logs go there. */
  readonly logs: string;
}

const RETRY_MS = 200;
const TRIES = 40;

/** The place of one main or worker: always filled, by one process after the other, with wires of its own. */
export class Slot {
  readonly kind: Kind;
  readonly name: string;
  /** All that have been here since the log was cleared. */
  instances: Instance[] = [];
  readonly wires: { readonly postgres: Wire; readonly redis: Wire; readonly clients: Wire };
  readonly #options: SlotOptions;
  #process: ProductProcess | null = null;
  #instance: Instance | null = null;
  #starting: Promise<void> | null = null;
  #listens = false;
  #count = 0;
  #closed = false;

  constructor(options: SlotOptions) {
    this.#options = options;
    this.kind = options.kind;
    this.name = options.name;
    const { postgresUrl, redisUrl } = options;
    const nowhere = 'http://127.0.0.1:1';
    this.wires = { postgres: new Wire(postgresUrl), redis: new Wire(redisUrl), clients: new Wire(nowhere) };
  }

  /** The address at which clients reach the main; null while it is down. */
  get baseUrl(): string | null {
    return this.#listens ? this.wires.clients.url.replace(/\/$/, '') : null;
  }

  /** The instance that is here now. */
  get instance(): Instance | null {
    return this.#instance;
  }

  async open(): Promise<this> {
    await Promise.all(Object.values(this.wires).map((wire) => wire.start()));
    return this;
  }

  /** Fills the slot, trying again until a process listens: with Postgres away, none does. */
  start(): Promise<void> {
    this.#starting ??= this.#fill().finally(() => {
      this.#starting = null;
    });
    return this.#starting;
  }

  async kill(): Promise<void> {
    const process = this.#process;
    if (!process?.alive) return;
    if (this.#instance?.endedAt === null) this.#instance.killedAt = now();
    await process.kill('SIGKILL');
  }

  pause(): void {
    this.#process?.pause();
  }

  resume(): void {
    this.#process?.resume();
  }

  /**
   * Asks the process to stop, and once more after `againMs`.
   * @returns false where it was still there after `ms`; it is killed then
   */
  async terminate(ms: number, againMs: number | null): Promise<boolean> {
    const process = this.#process;
    if (!process?.alive) return true;
    if (this.#instance?.endedAt === null) this.#instance.stoppingAt = now();
    process.signal('SIGTERM');
    if (againMs !== null) {
      await Promise.race([sleep(againMs), process.exit]);
      if (process.alive) process.signal('SIGTERM');
    }
    const late = sleep(ms).then(() => 'late' as const);
    if ((await Promise.race([process.exit, late])) !== 'late') return true;
    await this.kill();
    return false;
  }

  /** Begins a new log of instances with the one that is here. */
  clear(): void {
    this.instances = this.#instance ? [this.#instance] : [];
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.resume();
    await this.kill();
    await this.#starting;
    await this.kill();
    await Promise.all(Object.values(this.wires).map((wire) => wire.stop()));
  }

  async #fill(): Promise<void> {
    for (let tries = 1; !this.#closed && !this.#process?.alive; tries += 1) {
      if (await this.#spawn()) return;
      if (tries === TRIES) throw new Error(`${this.name} does not start:\n${this.#process?.tail()}`);
      await sleep(RETRY_MS);
    }
  }

  async #spawn(): Promise<boolean> {
    const { kind, entry, env } = this.#options;
    const urls = { DATABASE_URL: this.wires.postgres.url, REDIS_URL: this.wires.redis.url };
    this.#count += 1;
    const process = new ProductProcess(kind, `${this.name}.${this.#count}`, { ...env, ...urls }, [
      '--enable-source-maps',
      entry,
    ]);
    const instance = newInstance(process.name);
    this.#process = process;
    if (process.pid) noteProcess({ pid: process.pid, marker: entry });
    void process.exit.then((exit) => this.#ended(process, instance, exit));
    const port = await process.listening().catch(() => null);
    if (port === null) {
      if (process.alive) await process.kill();
      return false;
    }
    instance.startedAt = now();
    instance.workerId = String(process.log.find(({ msg }) => msg === 'listening')?.workerId ?? '');
    this.instances.push(instance);
    this.#instance = instance;
    if (kind === 'main') this.wires.clients.aim(`http://127.0.0.1:${port}`);
    this.#listens = process.alive;
    return process.alive;
  }

  #ended(process: ProductProcess, instance: Instance, exit: Exit): void {
    instance.endedAt = now();
    instance.exit = exit;
    const isOurs = instance.killedAt !== null || (instance.stoppingAt !== null && exit.code === 0);
    if (!isOurs) instance.tail = process.tail(30);
    // What ended by itself is started again, as a supervisor does; the checker reports it.
    if (!isOurs && instance === this.#instance) void this.start();
    if (process === this.#process) this.#listens = false;
    mkdirSync(this.#options.logs, { recursive: true });
    writeFileSync(join(this.#options.logs, `${process.name}.log`), `${process.output.join('\n')}\n`);
  }
}

function newInstance(name: string): Instance {
  const times = { startedAt: now(), stoppingAt: null, killedAt: null, endedAt: null };
  return { name, workerId: '', ...times, exit: null, tail: null };
}
