import { expect } from 'chai';
import type { EventData, SseEvent } from './sse-parser.js';
import type { SseStream } from './sse-stream.js';

const FINAL = ['success', 'error', 'cancelled', 'interrupted', 'suspended'];
const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
};

/** A turn's stream, read to its end. */
export interface Turn {
  readonly events: readonly SseEvent[];
  /** The types in order, deltas of one text or input joined to one. */
  readonly types: readonly string[];
  readonly queueId: string;
  readonly sessionId: string;
  readonly messageId: string;
  readonly executionId: string;
  readonly runId: string;
  readonly status: string;
  /** All text deltas, joined. */
  readonly text: string;
  readonly reasoning: string;
  readonly error: { readonly code: string; readonly message: string } | undefined;
  readonly usage: unknown;
  /** The data of every event of this type. */
  of(type: string): EventData[];
}

/** Reads a stream of `chat` to its end and checks every rule of section 4 that holds for each turn. */
export async function readTurn(stream: SseStream): Promise<Turn> {
  checkHeaders(stream);
  const events = await stream.all();
  expect(events[0]?.data.type, 'the first event').to.equal('message-queued');
  checkExecution(events.slice(1));
  return summarize(events);
}

/** The headers that every stream carries. */
export function checkHeaders(stream: SseStream): void {
  expect(stream.headers).to.include(HEADERS);
}

/**
 * Checks the events of one whole execution, from `execution-started` to `done`: cursors on each and all different,
 * starts and ends paired, calls announced before their results, `done` once and last.
 * @param called ids of calls that earlier executions of the run announced
 */
export function checkExecution(events: readonly SseEvent[], called: readonly unknown[] = []): void {
  expect(events[0]?.data.type).to.equal('execution-started');
  const done = events.filter((event) => event.data.type === 'done');
  expect(done, 'done events').to.have.length(1);
  expect(events.at(-1)).to.equal(done[0]);
  expect(done[0]?.data.status).to.be.oneOf(FINAL);
  checkCursors(events);
  checkNesting(
    events.map((event) => event.data),
    new Set(called),
  );
}

/** Every event has a cursor and no two have the same. */
export function checkCursors(events: readonly SseEvent[]): void {
  const ids = events.map((event) => event.id);
  for (const event of events) expect(event.id, `the cursor of ${JSON.stringify(event.data)}`).to.be.a('string');
  expect(new Set(ids).size, `cursors that come twice: ${ids}`).to.equal(ids.length);
}

/** Texts, reasonings, inputs and steps begin once, end once, and get nothing outside of that. */
function checkNesting(events: readonly EventData[], called: Set<unknown>): void {
  const open = new Set<string>();
  let step = false;
  const begin = (key: string) => {
    expect(open, `${key} begins twice`).not.to.include(key);
    open.add(key);
  };
  const inside = (key: string) => expect(open, `${key} is not open`).to.include(key);
  for (const event of events) {
    const key = `${event.type.split('-')[0]} ${event.id ?? event.toolCallId}`;
    if (event.type === 'start-step') {
      expect(step, 'a step inside a step').to.equal(false);
      step = true;
    } else if (event.type === 'finish-step') {
      expect(step, 'a step ends that never began').to.equal(true);
      expect([...open], 'left open at the end of a step').to.deep.equal([]);
      step = false;
    } else if (/^(text|reasoning|tool-input)-start$/.test(event.type)) begin(key);
    else if (/^(text|reasoning|tool-input)-delta$/.test(event.type)) {
      inside(key);
      expect(event.delta, `the delta of ${key}`).to.be.a('string').and.not.equal('');
    } else if (/^(text|reasoning)-end$/.test(event.type)) {
      inside(key);
      open.delete(key);
    } else if (event.type === 'tool-call') {
      expect(called, 'a call comes twice').not.to.include(event.toolCallId);
      called.add(event.toolCallId);
      open.delete(key);
    } else if (event.type === 'tool-result') expect(called, 'a result before its call').to.include(event.toolCallId);
  }
}

/** What the events of one stream come to; ids that no event told are the text 'undefined'. */
export function summarize(events: readonly SseEvent[]): Turn {
  const of = (type: string) => events.map((event) => event.data).filter((data) => data.type === type);
  const [queued, started, done, error] = ['message-queued', 'execution-started', 'done', 'error'].map(
    (type) => of(type)[0],
  );
  const join = (type: string) =>
    of(type)
      .map((data) => String(data.delta))
      .join('');
  return {
    events,
    types: joinedTypes(events),
    queueId: String(queued?.queueId),
    sessionId: String(queued?.sessionId),
    messageId: String(queued?.messageId),
    executionId: String(started?.executionId),
    runId: String(started?.runId),
    status: String(done?.status),
    text: join('text-delta'),
    reasoning: join('reasoning-delta'),
    error: error === undefined ? undefined : { code: String(error.code), message: String(error.message) },
    usage: done?.usage,
    of,
  };
}

/** The types of these events; neighbouring deltas of one kind count once, since they may be joined or split. */
export function joinedTypes(events: readonly SseEvent[]): string[] {
  const types = events.map((event) => event.data.type);
  return types.filter((type, at) => !(type.endsWith('-delta') && types[at - 1] === type));
}
