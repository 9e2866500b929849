import type { ExecutionEvent } from '@turnkeep/shared/contract/events';
import type { EventRelay } from './event-relay.js';
import { eventLine, preview } from './event-size.js';
import type { Recorder } from './recorder.js';
import type { JsonObject, JsonValue } from './runtime/json.js';
import type { StepPart } from './runtime/step.js';

/** A delta that waits for the end of this turn of the event loop, in case more of it comes. */
interface Pending {
  type: 'text-delta' | 'reasoning-delta' | 'tool-input-delta';
  id: string;
  toolName: string;
  delta: string;
}

/** Characters of a delta; more become several events, well under 64 KiB however they are escaped. */
const DELTA_CHARS = 10_000;

/** A call as the model made it, with what its provider calls it. */
export interface MadeCall {
  callId: string;
  toolName: string;
  input: JsonObject;
}

/**
 * The one way out of an execution: numbers its events, joins the deltas of one turn of the event loop, and hands each event
 * to the recorder and to the relay, in this order.
 */
export class Output {
  readonly #recorder: Recorder;
  readonly #relay: EventRelay;
  #n = 0;
  #pending: Pending | null = null;
  #closed = false;
  #toolNames = new Map<string, string>();

  constructor(recorder: Recorder, relay: EventRelay) {
    this.#recorder = recorder;
    this.#relay = relay;
  }

  /** The number of the last event so far. */
  get lastN(): number {
    return this.#n;
  }

  /** Nothing is taken any more: what a model still says after it was aborted belongs to nothing. */
  close(): void {
    this.flush();
    this.#closed = true;
  }

  /** Hands on an event that the record needs nothing of. */
  event(event: ExecutionEvent): void {
    this.#recorder.passed(this.#emit(event));
  }

  startStep(step: number): void {
    this.#recorder.step(this.#emit({ type: 'start-step', step }));
  }

  /** Events that a transaction has numbered and committed. */
  committed(events: { n: number; event: ExecutionEvent }[]): void {
    for (const { n, event } of events) {
      this.#n = n;
      this.#relay.add(n, eventLine(event));
    }
  }

  /** Hands on what the model says. */
  part(part: StepPart): void {
    if (this.#closed) return;
    switch (part.type) {
      case 'text-start':
      case 'reasoning-start': {
        const block = { type: part.type, id: part.id };
        this.#recorder.opened(part.id, block, this.#emit(block));
        return;
      }
      case 'text-end':
      case 'reasoning-end':
        this.#recorder.closed(part.id, this.#emit({ type: part.type, id: part.id }));
        return;
      case 'text-delta':
      case 'reasoning-delta':
        this.#delta({ type: part.type, id: part.id, toolName: '', delta: part.delta });
        return;
      case 'tool-input-start': {
        const block = { type: part.type, toolCallId: part.callId, toolName: part.toolName };
        this.#toolNames.set(part.callId, part.toolName);
        this.#recorder.opened(part.callId, block, this.#emit(block));
        return;
      }
      case 'tool-input-delta': {
        const toolName = this.#toolNames.get(part.callId) ?? '';
        this.#delta({ type: part.type, id: part.callId, toolName, delta: part.delta });
        return;
      }
      case 'tool-call':
        return;
    }
  }

  /** A call is complete: recorded as `running` before anything of it runs. */
  call({ callId, toolName, input }: MadeCall, ordinal: number, provider: { callId: string | null; key: string }): void {
    const inputJson = JSON.stringify(input);
    const cut = preview(inputJson);
    const shown = { toolCallId: callId, toolName, input: cut ?? input, ...(cut === null ? {} : { truncated: true }) };
    const n = this.#emit({ type: 'tool-call', ...shown });
    this.#recorder.closed(callId, n);
    this.#recorder.call(
      {
        id: callId,
        messageId: this.#recorder.segment,
        parentId: null,
        ordinal,
        toolName,
        inputJson,
        inputPreview: cut,
        providerCallId: provider.callId,
        providerKey: provider.key,
        state: 'running',
        outputJson: null,
        outputPreview: null,
        error: null,
      },
      n,
    );
  }

  /** A call ended with an output, or with an error that the model is told. */
  result(call: { callId: string; toolName: string }, output: JsonValue, isError: boolean): void {
    if (this.#closed) return;
    const outputJson = JSON.stringify(output);
    const cut = preview(outputJson);
    const n = this.#emit({
      type: 'tool-result',
      toolCallId: call.callId,
      toolName: call.toolName,
      output: cut ?? output,
      isError,
      ...(cut === null ? {} : { truncated: true }),
    });
    const error = isError ? errorText(output) : null;
    const state = isError ? ('error' as const) : ('done' as const);
    this.#recorder.callEnded({ id: call.callId, state, outputJson, outputPreview: cut, error }, n);
  }

  /** Hands on the delta that waits, so that what comes next is after it. */
  flush(): void {
    const pending = this.#pending;
    this.#pending = null;
    if (!pending) return;
    for (const delta of pieces(pending.delta)) {
      const { type, id, toolName } = pending;
      if (type === 'tool-input-delta') {
        this.#recorder.passed(this.#number({ type, toolCallId: id, toolName, delta }));
        continue;
      }
      const n = this.#number({ type, id, delta });
      this.#recorder.text(type === 'text-delta' ? 'text' : 'reasoning', id, delta, n);
    }
  }

  #delta(next: Pending): void {
    const pending = this.#pending;
    if (pending && pending.type === next.type && pending.id === next.id) {
      pending.delta += next.delta;
      return;
    }
    this.flush();
    this.#pending = { ...next };
    setImmediate(() => this.flush());
  }

  #emit(event: ExecutionEvent): number {
    this.flush();
    return this.#number(event);
  }

  #number(event: ExecutionEvent): number {
    this.#n += 1;
    this.#relay.add(this.#n, eventLine(event));
    return this.#n;
  }
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

/** What a failed call's part says in the transcript. */
function errorText(output: JsonValue): string {
  const text = typeof output === 'string' ? output : JSON.stringify(output);
  return text.length > 500 ? `${Array.from(text.slice(0, 500)).slice(0, -1).join('')}…` : text;
}
