import type { Redis } from 'ioredis';
import type { SessionRef } from '../chat/refs.js';
import { channels } from './keys.js';

/** What became of something that a stream waits for: a queue item by its queueId, an accepted resume by its checkpoint's id. */
export interface Outcome {
  kind: 'outcome';
  of: string;
  outcome: 'started' | 'steered' | 'removed' | 'cancelled';
  executionId: string | null;
}

/** A notification of contract section 7, before it is addressed to a browser. */
export interface Update {
  kind: 'update';
  of: 'execution' | 'queue';
  projectId: string;
  agentId: string;
  threadId: string;
  executionId?: string;
}

/** Stop: abort this execution. */
export interface Cancel {
  kind: 'cancel';
  executionId: string;
}

export type Signal = Outcome | Update | Cancel;

/**
 * Signals between processes, by Redis pub/sub. They may get lost, and each has a backstop in Postgres: a main looks at what
 * its streams wait for, a worker reads Stop's marks with each heartbeat, a client reads again after a reconnect.
 * Sending never throws and never waits for a Redis that is away.
 */
export class Signals {
  readonly #redis: Redis;

  /** @param redis a command connection */
  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Tells the mains whose streams wait in this session. */
  async outcome(sessionId: string, of: string, outcome: Outcome['outcome'], executionId: string | null): Promise<void> {
    await this.#send(channels.session(sessionId), { kind: 'outcome', of, outcome, executionId });
  }

  /** Announces that the queue of a session changed. */
  async queueChanged(ref: SessionRef): Promise<void> {
    await this.#send(channels.user(ref.userId), { ...update(ref), of: 'queue' });
  }

  /** Announces that an execution was recorded, grew, or changed its state. */
  async executionChanged(ref: SessionRef, executionId: string): Promise<void> {
    await this.#send(channels.user(ref.userId), { ...update(ref), of: 'execution', executionId });
  }

  /** Tells the worker that runs an execution to abort it. */
  async cancel(workerId: string, executionId: string): Promise<void> {
    await this.#send(channels.worker(workerId), { kind: 'cancel', executionId });
  }

  async #send(channel: string, signal: Signal): Promise<void> {
    await this.#redis.publish(channel, JSON.stringify(signal)).catch(() => {});
  }
}

function update(ref: SessionRef): Pick<Update, 'kind' | 'projectId' | 'agentId' | 'threadId'> {
  return { kind: 'update', projectId: ref.projectId, agentId: ref.agentId, threadId: ref.sessionId };
}

/** How often a listener asks Redis for a sign of life, in ms. */
export const PULSE_MS = 3_000;

/** Hears the signals of any number of channels over one connection, each channel for as long as somebody listens to it. */
export class SignalListener {
  readonly #redis: Redis;
  readonly #listeners = new Map<string, Set<(signal: Signal) => void>>();
  readonly #pulse: NodeJS.Timeout;

  /** @param redis a patient connection of its own, whose silence limit is above `PULSE_MS` */
  constructor(redis: Redis) {
    this.#redis = redis;
    // Quiet channels are no sign of life: without an answer to these the connection counts as dead and is made anew.
    this.#pulse = setInterval(() => void redis.ping().catch(() => {}), PULSE_MS);
    redis.on('message', (channel: string, text: string) => {
      const signal = JSON.parse(text) as Signal;
      for (const listener of [...(this.#listeners.get(channel) ?? [])]) listener(signal);
    });
  }

  /**
   * Starts to hear a channel.
   * @returns `ready`, which resolves when Redis has confirmed it (a lost connection subscribes again by itself), and
   *   `close`, which stops it
   */
  listen(channel: string, listener: (signal: Signal) => void): { ready: Promise<void>; close: () => void } {
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(listener));
    const ready = this.#redis.subscribe(channel).then(
      () => {},
      () => {},
    );
    return { ready, close: () => this.#close(channel, listener) };
  }

  #close(channel: string, listener: (signal: Signal) => void): void {
    const listeners = this.#listeners.get(channel);
    if (!listeners?.delete(listener) || listeners.size > 0) return;
    this.#listeners.delete(channel);
    this.#redis.unsubscribe(channel).catch(() => {});
  }

  /** Hears nothing more. The connection stays open. */
  stop(): void {
    clearInterval(this.#pulse);
    this.#listeners.clear();
  }
}
