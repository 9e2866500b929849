import type { ExecutionEvent, OutputEvent, SubagentChunk } from '@turnkeep/shared/contract/events';
import type { EventRelay } from './event-relay.js';
import { eventLine } from './event-size.js';
import type { Recorder } from './recorder.js';

/** Text that waits for the end of this turn of the event loop, in case more of the same comes. */
interface Pending {
  /** Whose text it is; only pieces with one key are joined. */
  key: string;
  text: string;
  /** Makes the event of a piece. */
  event: (delta: string) => ExecutionEvent;
  /** Records a piece that is event number `n`. */
  record: (delta: string, n: number) => void;
}

/** Characters of a delta; more become several events, well under 64 KiB however they are escaped. */
const DELTA_CHARS = 10_000;

/**
 * The one way out of an execution: numbers its events, joins the deltas of one turn of the event loop, and hands each event
 * to the relay and what is to be recorded of it to the recorder, in this order of numbers.
 */
export class Output {
  readonly recorder: Recorder;
  readonly #relay: EventRelay;
  #n = 0;
  #pending: Pending | null = null;
  #closed = false;

  constructor(recorder: Recorder, relay: EventRelay) {
    this.recorder = recorder;
    this.#relay = relay;
  }

  /** The number of the last event so far. */
  get lastN(): number {
    return this.#n;
  }

  /** True once nothing is taken any more: what a model still says after it was aborted belongs to nothing. */
  get closed(): boolean {
    return this.#closed;
  }

  close(): void {
    this.flush();
    this.#closed = true;
  }

  /** Hands on an event; `record` is told its number. */
  event(event: ExecutionEvent, record: (n: number) => void = (n) => this.recorder.passed(n)): void {
    this.flush();
    this.#number(event, record);
  }

  /** Hands on text that may be joined with what comes right after it. */
  delta(next: Pending): void {
    if (this.#pending?.key === next.key) {
      this.#pending.text += next.text;
      return;
    }
    this.flush();
    this.#pending = next;
    setImmediate(() => this.flush());
  }

  /** Events that a transaction has numbered and committed. */
  committed(events: { n: number; event: ExecutionEvent }[]): void {
    for (const { n, event } of events) {
      this.#n = n;
      this.#relay.add(n, eventLine(event));
    }
  }

  /** Hands on the text that waits, so that what comes next is after it. */
  flush(): void {
    const pending = this.#pending;
    this.#pending = null;
    if (!pending) return;
    for (const piece of pieces(pending.text)) this.#number(pending.event(piece), (n) => pending.record(piece, n));
  }

  #number(event: ExecutionEvent, record: (n: number) => void): void {
    this.#n += 1;
    this.#relay.add(this.#n, eventLine(event));
    record(this.#n);
  }
}

/** Wraps what a delegate says for each delegate call that leads to it, outermost first in `path`. */
export function wrap(path: readonly string[], event: OutputEvent): OutputEvent | SubagentChunk {
  return path.reduceRight<OutputEvent | SubagentChunk>(
    (chunk, toolCallId) => ({ type: 'subagent-chunk', toolCallId, chunk }),
    event,
  );
}

function* pieces(text: string): Generator<string> {
  let start = 0;
  while (start < text.length) {
    let end = Math.min(start + DELTA_CHARS, text.length);
    // Never between the halves of a character.
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end -= 1;
    yield text.slice(start, end);
    start = end;
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
