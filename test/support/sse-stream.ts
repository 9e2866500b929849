import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { deferred, PATIENCE_MS, within } from './deadline.js';
import { MalformedStream, type SseEvent, SseParser } from './sse-parser.js';

/** Which event a test waits for: its type, or a test of its own. */
export type EventMatch = string | ((event: SseEvent) => boolean);

/**
 * A stream of events being read. Nothing is dropped: what was skipped by `until` stands in `seen`. A mistake of the
 * server's framing surfaces in whichever call comes next.
 */
export class SseStream {
  readonly headers: IncomingHttpHeaders;
  /** Every event that a call of this class has handed out or passed over. */
  readonly seen: SseEvent[] = [];
  readonly #queue: SseEvent[] = [];
  readonly #parser = new SseParser((event) => this.#queue.push(event));
  #over: 'clean' | 'broken' | 'closed' | undefined;
  #mistake: Error | undefined;
  #wake = deferred();

  constructor(
    readonly what: string,
    private readonly message: IncomingMessage,
  ) {
    this.headers = message.headers;
    message.on('data', (chunk: Buffer) => this.#feed(() => this.#parser.push(chunk)));
    message.on('end', () => {
      this.#feed(() => this.#parser.end());
      this.#finish('clean');
    });
    message.on('error', () => this.#finish('broken'));
    message.on('close', () => this.#finish('broken'));
  }

  get comments(): readonly string[] {
    return this.#parser.comments;
  }

  /** How the stream ended, or `undefined` while it is open: `clean` is an HTTP body that came to its proper end. */
  get ending(): 'clean' | 'broken' | 'closed' | undefined {
    return this.#over;
  }

  /** The next event; rejects when the stream ends instead, or nothing comes in time. */
  async next(ms = PATIENCE_MS): Promise<SseEvent> {
    const event = await within(this.#take(), () => `no further event on ${this.what}; ${this.#history()}`, ms);
    if (event === undefined) throw new Error(`${this.what} ended (${this.#over}); ${this.#history()}`);
    return event;
  }

  /** Reads on up to the first event that matches, and answers with that event. */
  async until(match: EventMatch, ms = PATIENCE_MS): Promise<SseEvent> {
    const matches = typeof match === 'string' ? (event: SseEvent) => event.data.type === match : match;
    const search = async () => {
      for (let event = await this.#take(); event !== undefined; event = await this.#take()) {
        if (matches(event)) return event;
      }
      throw new Error(`${this.what} ended (${this.#over}) before ${match}; ${this.#history()}`);
    };
    return within(search(), () => `${match} did not come on ${this.what}; ${this.#history()}`, ms);
  }

  /** Reads to the end, which must be a clean one, and answers with every event since the stream was opened. */
  async all(ms = PATIENCE_MS): Promise<SseEvent[]> {
    const drain = async () => {
      while ((await this.#take()) !== undefined);
    };
    await within(drain(), () => `${this.what} did not end; ${this.#history()}`, ms);
    if (this.#over !== 'clean') throw new Error(`${this.what} was ${this.#over}; ${this.#history()}`);
    return this.seen;
  }

  /** Waits for the end of the stream, however it comes, and answers how it came. */
  async end(ms = PATIENCE_MS): Promise<'clean' | 'broken' | 'closed'> {
    const drain = async () => {
      while ((await this.#take()) !== undefined);
    };
    await within(drain(), () => `${this.what} did not end; ${this.#history()}`, ms);
    return this.#over ?? 'broken';
  }

  /** Drops the connection, as a browser does that leaves. */
  close(): void {
    this.#finish('closed');
    this.message.destroy();
  }

  /** Stops reading from the socket, as a stalled browser does. `resumeReading` goes on. */
  stall(): void {
    this.message.pause();
  }

  resumeReading(): void {
    this.message.resume();
  }

  async #take(): Promise<SseEvent | undefined> {
    for (;;) {
      const event = this.#queue.shift();
      if (event !== undefined) {
        this.seen.push(event);
        return event;
      }
      if (this.#mistake !== undefined) throw this.#mistake;
      if (this.#over !== undefined) return undefined;
      await this.#wake.promise;
    }
  }

  #feed(parse: () => void): void {
    if (this.#over === 'closed') return;
    try {
      parse();
    } catch (error) {
      this.#mistake ??= error instanceof Error ? error : new MalformedStream(String(error));
    }
    this.#signal();
  }

  #finish(how: 'clean' | 'broken' | 'closed'): void {
    this.#over ??= how;
    this.#signal();
  }

  #signal(): void {
    const wake = this.#wake;
    this.#wake = deferred();
    wake.resolve();
  }

  #history(): string {
    const events = [...this.seen, ...this.#queue].map((event) => JSON.stringify(event.data).slice(0, 160));
    const head = events.length > 20 ? [...events.slice(0, 5), '…', ...events.slice(-15)] : events;
    return `seen so far (${events.length} events):\n  ${head.join('\n  ')}`;
  }
}
