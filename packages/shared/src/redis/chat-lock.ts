import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { keys } from './keys.js';

/**
 * How long the chat lock lasts without a sign from its holder, in ms. A holder that dies blocks admission and Stop of that
 * session for no longer; one that lives prolongs it, so a slow database does not lose it.
 */
const TTL_MS = 1_500;
const PROLONG_MS = 400;
const RETRY_MS = 15;

/** KEYS[1] lock, ARGV[1] token. Deletes the lock where it is still ours; answers 1 or 0. */
const RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
/** KEYS[1] lock, ARGV[1] token, ARGV[2] ms. Prolongs the lock where it is still ours; answers 1 or 0. */
const PROLONG =
  "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";

interface LockCommands {
  turnkeepRelease(key: string, token: string): Promise<number>;
  turnkeepProlong(key: string, token: string, ms: number): Promise<number>;
}

/** A held chat lock. */
export interface HeldLock {
  /** Asks Redis whether the lock is still ours, and prolongs it if so. Never throws: not knowing is a no. */
  isHeld(): Promise<boolean>;
  /** Lets go; a lock that is no longer ours is left alone. Never throws. */
  release(): Promise<void>;
}

/**
 * The chat lock (contract, section 9.4): one Redis key a session, in the manner of Redlock on one server. Admission and
 * Stop share it. It orders them and no more; what must never happen is forbidden by Postgres.
 */
export class ChatLock {
  readonly #redis: Redis & LockCommands;

  constructor(redis: Redis) {
    redis.defineCommand('turnkeepRelease', { numberOfKeys: 1, lua: RELEASE });
    redis.defineCommand('turnkeepProlong', { numberOfKeys: 1, lua: PROLONG });
    this.#redis = redis as Redis & LockCommands;
  }

  /**
   * Takes the lock of a session, waiting for at most `waitMs`.
   * @returns null where somebody else held it all that time
   * @throws where Redis is away
   */
  async acquire(sessionId: string, waitMs: number): Promise<HeldLock | null> {
    const key = keys.chatLock(sessionId);
    const token = randomBytes(16).toString('base64url');
    const end = performance.now() + waitMs;
    while ((await this.#redis.set(key, token, 'PX', TTL_MS, 'NX')) !== 'OK') {
      if (performance.now() >= end) return null;
      await delay(RETRY_MS * (0.5 + Math.random()));
    }
    return this.#hold(key, token);
  }

  #hold(key: string, token: string): HeldLock {
    const prolong = async (): Promise<boolean> => {
      try {
        return (await this.#redis.turnkeepProlong(key, token, TTL_MS)) === 1;
      } catch {
        return false;
      }
    };
    const timer = setInterval(prolong, PROLONG_MS);
    return {
      isHeld: prolong,
      release: async () => {
        clearInterval(timer);
        await this.#redis.turnkeepRelease(key, token).catch(() => 0);
      },
    };
  }
}
