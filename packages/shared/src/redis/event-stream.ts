import type { Redis } from 'ioredis';
import { keys } from './keys.js';

/** How long an execution's events stay after the last one while it runs, and after its final state, in ms. */
const RUNNING_TTL_MS = 3_600_000;
const SEALED_TTL_MS = 330_000;
/** Entries that a stream keeps, about; what is older than that comes as a snapshot. */
const MAX_ENTRIES = 20_000;

/**
 * Some events of an execution, in order and without a gap. The events are numbered; `first` is one more than the last
 * number of the entry before, `last` the number of the last line, and the lines' numbers end there, one apart.
 */
export interface EventEntry {
  first: number;
  last: number;
  /** Each event as one line of JSON. */
  lines: string[];
}

/**
 * Appends entries, and seals the stream with the final one: both are one atomic step, so nothing of a late writer follows
 * the final state. Redis itself refuses an id that does not rise.
 * KEYS[1] stream, KEYS[2] seal; ARGV[1] '1': this is the final entry, ARGV[2] ms to live, ARGV[3] entries kept, then for
 * each entry its last number, its first number and its lines. Answers 0 where the stream is sealed.
 */
const APPEND = `
if redis.call('exists', KEYS[2]) == 1 then return 0 end
for i = 4, #ARGV, 3 do
  redis.call('xadd', KEYS[1], 'maxlen', '~', ARGV[3], ARGV[i] .. '-0', 'f', ARGV[i + 1], 'e', ARGV[i + 2])
end
redis.call('pexpire', KEYS[1], ARGV[2])
if ARGV[1] == '1' then redis.call('set', KEYS[2], '1', 'px', ARGV[2]) end
return 1`;

interface StreamCommands {
  turnkeepAppend(stream: string, seal: string, ...args: (string | number)[]): Promise<number>;
}

/** One execution's stream of events in Redis. */
export class EventStream {
  readonly #redis: Redis & StreamCommands;

  constructor(redis: Redis) {
    redis.defineCommand('turnkeepAppend', { numberOfKeys: 2, lua: APPEND });
    this.#redis = redis as Redis & StreamCommands;
  }

  /**
   * Appends `entries`; with `seal`, nothing is taken after them.
   * @returns false where the stream was sealed before
   * @throws where Redis is away or a number does not rise; readers then see a gap and go to the record
   */
  async append(sessionId: string, executionId: string, entries: EventEntry[], seal: boolean): Promise<boolean> {
    const args: (string | number)[] = [seal ? '1' : '0', seal ? SEALED_TTL_MS : RUNNING_TTL_MS, MAX_ENTRIES];
    for (const entry of entries) args.push(entry.last, entry.first, entry.lines.join('\n'));
    const taken = await this.#redis.turnkeepAppend(
      keys.events(sessionId, executionId),
      keys.seal(sessionId, executionId),
      ...args,
    );
    return taken === 1;
  }

  /** The entries after event number `after`, oldest first, at most `count` of them. Throws where Redis is away. */
  async read(sessionId: string, executionId: string, after: number, count: number): Promise<EventEntry[]> {
    const rows = await this.#redis.xrange(keys.events(sessionId, executionId), `(${after}-0`, '+', 'COUNT', count);
    return rows.map(parseEntry);
  }

  /** The number of the last event in the stream; 0 where there is none or Redis is away. */
  async lastNumber(sessionId: string, executionId: string): Promise<number> {
    const rows = await this.#redis
      .xrevrange(keys.events(sessionId, executionId), '+', '-', 'COUNT', 1)
      .catch((): [string, string[]][] => []);
    return rows[0] ? Number.parseInt(rows[0][0], 10) : 0;
  }
}

/** Reads one entry as Redis returns it. */
export function parseEntry([id, fields]: [id: string, fields: string[]]): EventEntry {
  return { last: Number.parseInt(id, 10), first: Number(fields[1]), lines: (fields[3] ?? '').split('\n') };
}
