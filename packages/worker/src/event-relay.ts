import type { EventEntry, EventStream } from '@turnkeep/shared/redis/event-stream';

/** Bytes of an entry, about, before the next one begins. */
const ENTRY_CHARS = 128 * 1024;
/** Characters that may be on their way to Redis; what comes then is left to the record, and readers see a gap. */
const IN_FLIGHT_CHARS = 8 * 1024 * 1024;

/**
 * Carries the events of one execution to its Redis stream. What comes within one turn of the event loop goes out as one
 * append. It never waits: events that Redis does not take are missing there, readers see the gap and go to the record.
 */
export class EventRelay {
  readonly #stream: EventStream;
  readonly #sessionId: string;
  readonly #executionId: string;
  readonly #entries: EventEntry[] = [];
  #appendedN = 0;
  #scheduled = false;
  #inFlight = 0;
  #dropped = false;

  constructor(stream: EventStream, sessionId: string, executionId: string) {
    this.#stream = stream;
    this.#sessionId = sessionId;
    this.#executionId = executionId;
  }

  /** Adds event number `n`. */
  add(n: number, line: string): void {
    if (this.#dropped) return;
    const current = this.#entries.at(-1);
    if (current && charsOf(current) < ENTRY_CHARS) {
      current.lines.push(line);
      current.last = n;
    } else {
      this.#entries.push({ first: (current?.last ?? this.#appendedN) + 1, last: n, lines: [line] });
    }
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      void this.#append(false);
    });
  }

  /** Appends at once what was added, so that what is sent to Redis next comes after it. */
  flush(): void {
    void this.#append(false);
  }

  /** Adds the last events, of which the last has number `n`, and seals the stream: nothing is taken after them. */
  async seal(n: number, lines: string[]): Promise<void> {
    this.#entries.push({ first: (this.#entries.at(-1)?.last ?? this.#appendedN) + 1, last: n, lines });
    await this.#append(true);
  }

  /**
   * Throws away what was not appended yet, and takes nothing more: the execution is over or somebody else's. What a model
   * still says must not follow what was thrown away, as if nothing were missing between them.
   */
  drop(): void {
    this.#dropped = true;
    this.#entries.length = 0;
  }

  async #append(seal: boolean): Promise<void> {
    const entries = this.#entries.splice(0);
    const last = entries.at(-1)?.last;
    if (last === undefined) return;
    this.#appendedN = last;
    const chars = entries.reduce((sum, entry) => sum + charsOf(entry), 0);
    if (!seal && this.#inFlight + chars > IN_FLIGHT_CHARS) return;
    this.#inFlight += chars;
    await this.#stream.append(this.#sessionId, this.#executionId, entries, seal).catch(() => false);
    this.#inFlight -= chars;
  }
}

function charsOf(entry: EventEntry): number {
  return entry.lines.reduce((sum, line) => sum + line.length, 0);
}
