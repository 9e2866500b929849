import { ProblemError } from '@turnkeep/shared/contract/problems';
import { keys } from '@turnkeep/shared/redis/keys';
import type { Redis } from 'ioredis';

/** How long a main's count is believed without a sign from it, in ms: a main that died frees its users' places then. */
const TTL_MS = 10_000;
const REFRESH_MS = 3_000;
const NO_LIMIT = Number.MAX_SAFE_INTEGER;

/**
 * Sets how many streams of a user a main has, unless that would make too many over all mains.
 * KEYS[1] the user's hash of mains; ARGV[1] the main, ARGV[2] its count, ARGV[3] the limit, ARGV[4] ms to live.
 * Answers 1, or 0 where it would be too many: nothing is changed then.
 */
const SET_COUNT = `
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local others = 0
local counts = redis.call('hgetall', KEYS[1])
for i = 1, #counts, 2 do
  local count, expires = string.match(counts[i + 1], '^(%d+):(%d+)$')
  if tonumber(expires) < now then redis.call('hdel', KEYS[1], counts[i])
  elseif counts[i] ~= ARGV[1] then others = others + tonumber(count) end
end
local own = tonumber(ARGV[2])
if others + own > tonumber(ARGV[3]) then return 0 end
if own == 0 then redis.call('hdel', KEYS[1], ARGV[1])
else redis.call('hset', KEYS[1], ARGV[1], own .. ':' .. (now + tonumber(ARGV[4]))) end
redis.call('pexpire', KEYS[1], ARGV[4])
return 1`;

interface PlaceCommands {
  turnkeepSetCount(key: string, main: string, count: number, max: number, ttlMs: number): Promise<number>;
}

/** Counts a user's SSE streams over all mains (contract, section 1: MAX_STREAMS). With Redis away each main counts its own. */
export class StreamPlaces {
  readonly #redis: Redis & PlaceCommands;
  readonly #mainId: string;
  readonly #max: number;
  readonly #counts = new Map<string, number>();
  #timer: NodeJS.Timeout | null = null;

  /** @param redis a command connection */
  constructor(redis: Redis, mainId: string, max: number) {
    redis.defineCommand('turnkeepSetCount', { numberOfKeys: 1, lua: SET_COUNT });
    this.#redis = redis as Redis & PlaceCommands;
    this.#mainId = mainId;
    this.#max = max;
  }

  start(): void {
    this.#timer = setInterval(() => {
      for (const userId of this.#counts.keys()) void this.#tell(userId, NO_LIMIT);
    }, REFRESH_MS);
  }

  stop(): void {
    if (this.#timer) clearInterval(this.#timer);
  }

  /**
   * Takes a place for one more stream of a user.
   * @returns a function that gives it back; only its first call does
   * @throws ProblemError `too_many_streams`
   */
  async take(userId: string): Promise<() => void> {
    const count = (this.#counts.get(userId) ?? 0) + 1;
    this.#counts.set(userId, count);
    let isTaken = true;
    const giveBack = () => {
      if (!isTaken) return;
      isTaken = false;
      const left = (this.#counts.get(userId) ?? 1) - 1;
      if (left > 0) this.#counts.set(userId, left);
      else this.#counts.delete(userId);
      void this.#tell(userId, NO_LIMIT);
    };
    if (count <= this.#max && (await this.#tell(userId, this.#max))) return giveBack;
    giveBack();
    throw new ProblemError('too_many_streams', `At most ${this.#max} streams. Close one, or ask for JSON.`);
  }

  /** Tells the other mains how many streams this one has of a user; false where that is too many. */
  async #tell(userId: string, max: number): Promise<boolean> {
    const count = this.#counts.get(userId) ?? 0;
    const set = this.#redis.turnkeepSetCount(keys.streams(userId), this.#mainId, count, max, TTL_MS);
    return set.then(
      (taken) => taken === 1,
      () => true,
    );
  }
}
