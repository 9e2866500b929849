import type { EventEntry } from '@turnkeep/shared/redis/event-stream';
import { parseEntry } from '@turnkeep/shared/redis/event-stream';
import { keys } from '@turnkeep/shared/redis/keys';
import type { Redis } from 'ioredis';

/** How long one read blocks, in ms; the connection's silence limit is above it. */
export const BLOCK_MS = 5_000;
const RETRY_MS = 100;
/** Entries of a stream that one read brings at most. */
const COUNT = 500;
const WAKE_UP_TTL_MS = 3_600_000;

type Listener = (entry: EventEntry) => void;

interface Topic {
  key: string;
  /** The id of the last entry that was read. */
  lastId: string;
  listeners: Set<Listener>;
}

/**
 * Follows the event streams of all executions that this main's connections want, with one blocking Redis connection, and
 * fans out in memory. After a lost connection it goes on where it was; what is missing then shows as a gap in the entries'
 * numbers, which each follower handles by itself.
 */
export class StreamHub {
  readonly #reader: Redis;
  readonly #commands: Redis;
  readonly #wakeUpKey: string;
  readonly #topics = new Map<string, Topic>();
  #wakeUpId = '0-0';
  #parked: (() => void) | null = null;
  #waking = false;
  #stopped = false;
  #endWait: (() => void) | null = null;
  #running: Promise<void> | null = null;

  /**
   * @param reader a patient connection of its own
   * @param commands a command connection
   */
  constructor(reader: Redis, commands: Redis, mainId: string) {
    this.#reader = reader;
    this.#commands = commands;
    this.#wakeUpKey = keys.wakeUp(mainId);
  }

  start(): void {
    this.#running ??= this.#loop();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#parked?.();
    this.#endWait?.();
    this.#reader.disconnect();
    await this.#running;
  }

  /**
   * Hears the entries of an execution from event number `after` on.
   * @returns `leave`, which ends it, and `joined`: true where somebody follows the execution already, so that entries
   *   before now are not heard
   */
  follow(
    sessionId: string,
    executionId: string,
    after: number,
    listener: Listener,
  ): { joined: boolean; leave: () => void } {
    const key = keys.events(sessionId, executionId);
    const topic = this.#topics.get(key) ?? { key, lastId: `${after}-0`, listeners: new Set<Listener>() };
    const isNew = topic.listeners.size === 0;
    topic.listeners.add(listener);
    this.#topics.set(key, topic);
    if (isNew) this.#wakeUp();
    const leave = () => {
      topic.listeners.delete(listener);
      if (topic.listeners.size === 0 && this.#topics.get(key) === topic) this.#topics.delete(key);
    };
    return { joined: !isNew, leave };
  }

  /** The read that blocks now knows nothing of a new stream: an entry in the main's own stream ends it. */
  #wakeUp(): void {
    if (this.#parked) {
      this.#parked();
      return;
    }
    if (this.#waking) return;
    this.#waking = true;
    // Several within one turn of the event loop need one wake-up.
    setImmediate(() => {
      this.#waking = false;
      this.#commands
        .pipeline()
        .xadd(this.#wakeUpKey, 'MAXLEN', 1, '*', 'w', '1')
        .pexpire(this.#wakeUpKey, WAKE_UP_TTL_MS)
        .exec()
        .catch(() => {});
    });
  }

  async #loop(): Promise<void> {
    while (!this.#stopped) {
      if (this.#topics.size === 0) {
        await new Promise<void>((resolve) => {
          this.#parked = resolve;
        });
        this.#parked = null;
        continue;
      }
      // A read that waits for a Redis that is away never ends, also where its connection is closed: stop() ends the wait.
      await new Promise<void>((resolve) => {
        this.#endWait = resolve;
        void this.#readOrPause().then(resolve);
      });
    }
  }

  async #readOrPause(): Promise<void> {
    await this.#read().catch(() => new Promise((resolve) => setTimeout(resolve, RETRY_MS)));
  }

  async #read(): Promise<void> {
    const topics = [...this.#topics.values()];
    const streams = [this.#wakeUpKey, ...topics.map((topic) => topic.key)];
    const ids = [this.#wakeUpId, ...topics.map((topic) => topic.lastId)];
    const replies = await this.#reader.xread('COUNT', COUNT, 'BLOCK', BLOCK_MS, 'STREAMS', ...streams, ...ids);
    for (const [key, rows] of replies ?? []) {
      if (key === this.#wakeUpKey) this.#wakeUpId = rows.at(-1)?.[0] ?? this.#wakeUpId;
      else this.#deliver(key, rows as [string, string[]][]);
    }
  }

  #deliver(key: string, rows: [string, string[]][]): void {
    const topic = this.#topics.get(key);
    if (!topic) return;
    for (const row of rows) {
      topic.lastId = row[0];
      const entry = parseEntry(row);
      for (const listener of [...topic.listeners]) listener(entry);
    }
  }
}
