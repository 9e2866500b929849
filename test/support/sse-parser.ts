/** One event of a stream, as it arrived: its cursor where it has one, and the JSON object of its data. */
export interface SseEvent {
  readonly id: string | undefined;
  readonly data: EventData;
  /** Bytes of the whole frame, its blank line included. */
  readonly bytes: number;
}

/** The object of a `data:` line. Fields other than `type` are read by the tests that know them. */
export type EventData = { readonly type: string } & { readonly [field: string]: unknown };

/** Something that a reader of the contract may not find on a stream (contract, section 4). */
export class MalformedStream extends Error {
  override name = 'MalformedStream';
}

const MAX_EVENT_BYTES = 64 * 1024;
const UNBOUNDED = new Set(['snapshot', 'execution-started', 'message-steered']);

/**
 * Cuts a stream of bytes into events and comments, and throws `MalformedStream` for whatever section 4 of the contract
 * does not describe: bad UTF-8, a second data line, an unknown field, data that is no JSON object with a `type`, a lone
 * surrogate, an event above 64 KiB. Strict where browsers are lenient: a browser would hide the mistake.
 */
export class SseParser {
  readonly comments: string[] = [];
  #pending = Buffer.alloc(0);

  constructor(private readonly onEvent: (event: SseEvent) => void) {}

  push(chunk: Buffer): void {
    this.#pending = Buffer.concat([this.#pending, chunk]);
    for (let end = this.#pending.indexOf('\n\n'); end >= 0; end = this.#pending.indexOf('\n\n')) {
      const frame = this.#pending.subarray(0, end);
      this.#pending = this.#pending.subarray(end + 2);
      this.#frame(frame, end + 2);
    }
  }

  /** To be called when the response has ended: a frame that was begun and not finished is a mistake. */
  end(): void {
    if (this.#pending.length > 0) throw new MalformedStream(`the stream ended inside a frame: ${this.#pending}`);
  }

  #frame(frame: Buffer, bytes: number): void {
    const text = decode(frame);
    let id: string | undefined;
    let data: string | undefined;
    for (const line of text.split('\n')) {
      if (line.startsWith(':')) this.comments.push(line.slice(1).trim());
      else if (line.startsWith('id: ') && id === undefined) id = line.slice(4);
      else if (line.startsWith('data: ') && data === undefined) data = line.slice(6);
      else throw new MalformedStream(`unexpected line ${JSON.stringify(line)} in the frame ${JSON.stringify(text)}`);
    }
    if (data !== undefined) this.onEvent(event(id, data, bytes));
    else if (id !== undefined) throw new MalformedStream(`a frame with an id and no data: ${JSON.stringify(text)}`);
  }
}

function decode(frame: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(frame);
  } catch {
    throw new MalformedStream(`a frame that is not UTF-8: ${frame.toString('hex').slice(0, 200)}`);
  }
}

function event(id: string | undefined, json: string, bytes: number): SseEvent {
  const data = parse(json);
  if (id === '') throw new MalformedStream(`an empty id on ${json.slice(0, 200)}`);
  if (bytes > MAX_EVENT_BYTES && !UNBOUNDED.has(data.type)) {
    throw new MalformedStream(`an event '${data.type}' of ${bytes} bytes; the bound is ${MAX_EVENT_BYTES}`);
  }
  return { id, data, bytes };
}

function parse(json: string): EventData {
  let value: unknown;
  try {
    value = JSON.parse(json, (_, field: unknown) => storable(field));
  } catch (cause) {
    throw new MalformedStream(`data that is not JSON, or not Unicode: ${json.slice(0, 200)}`, { cause });
  }
  if (typeof value !== 'object' || value === null || !('type' in value) || typeof value.type !== 'string') {
    throw new MalformedStream(`data that is no object with a type: ${json.slice(0, 200)}`);
  }
  return value as EventData;
}

function storable(field: unknown): unknown {
  if (typeof field === 'string' && (!field.isWellFormed() || field.includes('\0'))) {
    throw new Error(`U+0000 or a lone surrogate in ${JSON.stringify(field.slice(0, 100))}`);
  }
  return field;
}
