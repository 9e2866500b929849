import type { ExecutionMark, RecordedExecution } from '@turnkeep/shared/chat/events-from-record';
import { readMarks, readRecorded } from '@turnkeep/shared/chat/events-from-record';
import type { ChatEvent } from '@turnkeep/shared/contract/events';
import type { Database } from '@turnkeep/shared/db/database';
import type { EventEntry, EventStream } from '@turnkeep/shared/redis/event-stream';
import type { SseConnection } from './connection.js';
import { type Cursor, formatCursor, MAX_SUB } from './cursor.js';
import { eventsBefore, finalEvents, type RecordedEvent } from './recorded-events.js';
import type { StreamHub } from './stream-hub.js';

/** Characters of live entries that wait for a slow reader; more are thrown away and read again from Redis. */
const QUEUE_CHARS = 1024 * 1024;
const PAGE = 200;
/** How long a follower waits for the record to close a gap before it looks again, in ms. */
const GAP_MS = 100;
/** What was said before now is in the record after this at the latest (contract, section 5), in ms. */
const RECORDED_MS = 500;

export interface FollowerDeps {
  db: Database;
  events: EventStream;
  hub: StreamHub;
}

export interface Followed {
  sessionId: string;
  executionId: string;
  /** The cursor after which events are wanted. */
  after: Cursor;
  /**
   * `now`: the execution starts at this moment, all of it comes live. `start`: it started some time ago, and every event
   * that reports a commit is wanted. `anywhere`: what is no longer kept may come as a snapshot.
   */
  from: 'now' | 'start' | 'anywhere';
}

/**
 * Carries the events of one execution to one connection (contract, section 4): live from the hub, what came before from the
 * Redis stream, and what is in neither from the record, as a `snapshot`. `last` is the number of the last event that was
 * delivered; everything else follows from it: what is not above it is a repetition, what does not join it is a gap.
 */
export class Follower {
  readonly #deps: FollowerDeps;
  readonly #connection: SseConnection;
  readonly #followed: Followed;
  #queue: EventEntry[] = [];
  #queued = 0;
  #last: number;
  #begun: boolean;
  #catchUp = true;
  #check = false;
  #done = false;
  #wake: (() => void) | null = null;

  constructor(deps: FollowerDeps, connection: SseConnection, followed: Followed) {
    this.#deps = deps;
    this.#connection = connection;
    this.#followed = followed;
    this.#last = followed.after.n;
    this.#begun = followed.from !== 'anywhere' || followed.after.n > 0;
    // What starts now comes live; asking Redis first would be a round trip for nothing.
    this.#catchUp = followed.from !== 'now';
    this.#check = followed.from !== 'now';
  }

  get executionId(): string {
    return this.#followed.executionId;
  }

  /** Follows until `done` was delivered, the execution is gone, or the connection is closed. */
  async run(): Promise<void> {
    const { sessionId, executionId } = this.#followed;
    const { hub } = this.#deps;
    const { joined, leave } = hub.follow(sessionId, executionId, this.#last, (entry) => this.#take(entry));
    if (joined) this.#catchUp = true;
    this.#connection.onClose(() => this.#wake?.());
    try {
      while (!this.#done && (await this.#connection.writable())) await this.#advance();
    } finally {
      leave();
    }
  }

  /** Told what the record says now, null: the execution is gone. Something may be missing here that nobody will send. */
  look(mark: ExecutionMark | null): void {
    const isBehind = mark === null || mark.finalN !== null || mark.recordedN > this.#last;
    if (!isBehind || !this.#connection.keepsUp) return;
    this.#catchUp = true;
    this.#check = true;
    this.#wake?.();
  }

  #take(entry: EventEntry): void {
    this.#queue.push(entry);
    this.#queued += entry.lines.reduce((sum, line) => sum + line.length, 0);
    if (this.#queued > QUEUE_CHARS) {
      this.#clearQueue();
      this.#catchUp = true;
    }
    this.#wake?.();
  }

  async #advance(): Promise<void> {
    if (this.#catchUp) return this.#readStream();
    if (this.#queue.length > 0) return this.#deliverQueue();
    if (this.#check) return this.#checkRecord();
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#wake = null;
  }

  #deliverQueue(): void {
    const entries = this.#queue;
    this.#clearQueue();
    for (const entry of entries) {
      if (entry.last <= this.#last) continue;
      // What is missing was heard by nobody here, but may stand in Redis.
      if (!this.#joins(entry)) {
        this.#catchUp = true;
        return;
      }
      this.#deliver(entry);
    }
  }

  async #readStream(): Promise<void> {
    const { sessionId, executionId } = this.#followed;
    this.#catchUp = false;
    const page = await this.#deps.events.read(sessionId, executionId, this.#last, PAGE).catch(() => []);
    for (const entry of page) {
      if (entry.last <= this.#last) continue;
      if (!this.#joins(entry)) return this.#closeGap(entry);
      this.#deliver(entry);
    }
    if (page.length === PAGE) this.#catchUp = true;
  }

  /** An entry that begins at 0 was sent by somebody who does not know what came before: nothing joins it. */
  #joins(entry: EventEntry): boolean {
    return entry.first > 0 && entry.first <= this.#last + 1;
  }

  #deliver({ last, lines }: EventEntry): void {
    const firstN = last - lines.length + 1;
    let frames = '';
    for (const [index, line] of lines.entries()) {
      if (firstN + index <= this.#last) continue;
      frames += this.#frame({ n: firstN + index, sub: 0 }, line);
      if (line.startsWith('{"type":"done"')) this.#done = true;
    }
    this.#last = last;
    this.#begun = true;
    this.#connection.write(frames);
  }

  /** Events before `entry` are in no stream: the record has them, or will with its next flush. */
  async #closeGap(entry: EventEntry): Promise<void> {
    await this.#fromRecord(({ recordedN }) => entry.first > 0 && entry.first <= recordedN + 1);
    this.#catchUp = true;
  }

  async #checkRecord(): Promise<void> {
    this.#check = false;
    const [mark] = await readMarks(this.#deps.db, [this.#followed.executionId]).catch(() => [null]);
    if (mark === null) return;
    if (mark === undefined) {
      this.#done = true;
    } else if (mark.finalN !== null || mark.recordedN > this.#last) {
      // What is on record was in the stream before: it is read once more, now that the record was asked.
      await this.#readStream();
      if (this.#catchUp) this.#check = true;
      else if (!this.#done && (mark.finalN !== null || mark.recordedN > this.#last)) await this.#fromRecordSoon();
    }
  }

  /** The stream lacks something, and nothing says what comes next: the record is given the time that it may take. */
  async #fromRecordSoon(): Promise<void> {
    const settled = performance.now() + RECORDED_MS;
    await this.#fromRecord((recorded) => performance.now() >= settled || this.#streamJoins(recorded));
  }

  /** Whether the stream goes on where the record ends. */
  async #streamJoins({ recordedN }: RecordedExecution): Promise<boolean> {
    const { sessionId, executionId } = this.#followed;
    const [next] = await this.#deps.events.read(sessionId, executionId, recordedN, 1).catch(() => []);
    return next !== undefined && next.first > 0 && next.first <= recordedN + 1;
  }

  /**
   * Delivers from the record what the stream does not have. While the execution runs, the record is waited for until it
   * `reaches` what comes next, so that nothing is missing after it.
   */
  async #fromRecord(reaches: (recorded: RecordedExecution) => boolean | Promise<boolean>): Promise<void> {
    while (!this.#connection.closed) {
      const recorded = await readRecorded(this.#deps.db, this.#followed.executionId).catch(() => undefined);
      if (recorded === null) {
        this.#done = true;
        return;
      }
      if (recorded && this.#begun) this.#events(eventsBefore(recorded, this.#last).filter(({ n }) => n === 1));
      if (recorded && (recorded.finalN !== null || (await reaches(recorded)))) return this.#deliverRecorded(recorded);
      await new Promise((resolve) => setTimeout(resolve, GAP_MS));
    }
  }

  #deliverRecorded(recorded: RecordedExecution): void {
    const events = this.#begun ? eventsBefore(recorded, this.#last) : [];
    // Where the commits are not all that is missing, a snapshot has the rest.
    const isPart = recorded.recordedN - this.#last > events.length || !this.#begun;
    this.#events(events);
    if (isPart) this.#snapshot(recorded);
    if (recorded.finalN === null) return;
    this.#events(finalEvents(recorded, this.#last));
    this.#done = true;
  }

  #snapshot(recorded: RecordedExecution): void {
    const n = Math.max(recorded.recordedN, this.#last);
    this.#send({ n, sub: 1 }, { type: 'snapshot', messages: recorded.messages });
    this.#last = n;
    this.#begun = true;
    // What is under way is announced again, so that the deltas that follow belong to something.
    for (const [index, event] of recorded.openBlocks.slice(0, MAX_SUB - 1).entries())
      this.#send({ n, sub: index + 2 }, event);
  }

  #events(events: RecordedEvent[]): void {
    for (const { n, event } of events) {
      this.#send({ n, sub: 0 }, event);
      this.#last = n;
      this.#begun = true;
    }
  }

  #send(cursor: Cursor, event: ChatEvent): void {
    this.#connection.write(this.#frame(cursor, JSON.stringify(event)));
  }

  #frame(cursor: Cursor, line: string): string {
    return `id: ${formatCursor(this.#followed.executionId, cursor)}\ndata: ${line}\n\n`;
  }

  #clearQueue(): void {
    this.#queue = [];
    this.#queued = 0;
  }
}
