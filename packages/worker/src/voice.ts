import type { OutputEvent } from '@turnkeep/shared/contract/events';
import { countCodePoints, takeCodePoints } from '@turnkeep/shared/contract/text';
import { preview } from './event-size.js';
import type { Frame } from './frame.js';
import { type Output, wrap } from './output.js';
import type { JsonObject, JsonValue } from './runtime/json.js';
import type { StepPart } from './runtime/step.js';

/** How a call ended. `denied`: a person said no. */
export type CallEnd = 'done' | 'error' | 'denied';

/**
 * What one agent of an execution says and does, as events and as record: the agent itself, or a delegate, whose events
 * are wrapped in `subagent-chunk` and of whose text a budget is kept (contract, sections 4 and 5).
 */
export class Voice {
  readonly #output: Output;
  readonly #frame: Pick<Frame, 'path' | 'kept'>;
  readonly #toolNames = new Map<string, string>();

  constructor(output: Output, frame: Pick<Frame, 'path' | 'kept'>) {
    this.#output = output;
    this.#frame = frame;
  }

  /** Hands on what the model says. Complete calls come by `call`. */
  part(part: StepPart): void {
    if (this.#output.closed) return;
    switch (part.type) {
      case 'text-start':
      case 'reasoning-start':
        this.#open(part.id, { type: part.type, id: part.id });
        return;
      case 'text-end':
      case 'reasoning-end':
        this.#emit({ type: part.type, id: part.id }, (n) => this.#output.recorder.closed(part.id, n));
        return;
      case 'text-delta':
      case 'reasoning-delta':
        this.#text(part);
        return;
      case 'tool-input-start':
        this.#toolNames.set(part.callId, part.toolName);
        this.#open(part.callId, { type: part.type, toolCallId: part.callId, toolName: part.toolName });
        return;
      case 'tool-input-delta':
        this.#toolInput(part);
        return;
      case 'tool-call':
        return;
    }
  }

  /** A call is complete: recorded as `running` before anything of it runs. */
  call(
    { callId, toolName, input }: { callId: string; toolName: string; input: JsonObject },
    ordinal: number,
    provider: { callId: string | null; key: string },
  ): void {
    if (this.#output.closed) return;
    const inputJson = JSON.stringify(input);
    const cut = preview(inputJson);
    const shown = { toolCallId: callId, toolName, input: cut ?? input, ...(cut === null ? {} : { truncated: true }) };
    const { recorder } = this.#output;
    const call = {
      id: callId,
      messageId: recorder.segment,
      parentId: this.#frame.path.at(-1) ?? null,
      ordinal,
      toolName,
      inputJson,
      inputPreview: cut,
      providerCallId: provider.callId,
      providerKey: provider.key,
      state: 'running' as const,
      outputJson: null,
      outputPreview: null,
      error: null,
    };
    this.#emit({ type: 'tool-call', ...shown }, (n) => {
      recorder.closed(callId, n);
      recorder.call(call, n);
    });
  }

  /** A call that waited for a person runs from now on. */
  begins({ callId }: { callId: string }): void {
    const state = { state: 'running' as const, outputJson: null, outputPreview: null, error: null };
    this.#output.recorder.callEnded({ id: callId, ...state }, this.#output.lastN);
  }

  /** A call ended with an output, or with an error that the model is told. */
  result(call: { callId: string; toolName: string }, output: JsonValue, state: CallEnd): void {
    if (this.#output.closed) return;
    const outputJson = JSON.stringify(output);
    const cut = preview(outputJson);
    const event: OutputEvent = {
      type: 'tool-result',
      toolCallId: call.callId,
      toolName: call.toolName,
      output: cut ?? output,
      isError: state !== 'done',
      ...(cut === null ? {} : { truncated: true }),
    };
    const error = state === 'done' ? null : errorText(output);
    this.#emit(event, (n) =>
      this.#output.recorder.callEnded({ id: call.callId, state, outputJson, outputPreview: cut, error }, n),
    );
  }

  #open(key: string, block: Parameters<Output['recorder']['opened']>[1]): void {
    const { recorder } = this.#output;
    // A snapshot announces again what is under way; of a delegate it holds the text so far and no more.
    this.#emit(block, (n) => (this.#frame.path.length === 0 ? recorder.opened(key, block, n) : recorder.passed(n)));
  }

  #text({ type, id, delta }: Extract<StepPart, { type: 'text-delta' | 'reasoning-delta' }>): void {
    const kind = type === 'text-delta' ? 'text' : 'reasoning';
    this.#output.delta({
      key: `${type} ${id}`,
      text: delta,
      event: (piece) => wrap(this.#frame.path, { type, id, delta: piece }),
      record: (piece, n) => this.#record(kind, id, piece, n),
    });
  }

  #toolInput({ type, callId, delta }: Extract<StepPart, { type: 'tool-input-delta' }>): void {
    const toolName = this.#toolNames.get(callId) ?? '';
    this.#output.delta({
      key: `${type} ${callId}`,
      text: delta,
      event: (piece) => wrap(this.#frame.path, { type, toolCallId: callId, toolName, delta: piece }),
      record: (_, n) => this.#output.recorder.passed(n),
    });
  }

  #record(kind: 'text' | 'reasoning', block: string, text: string, n: number): void {
    const { recorder } = this.#output;
    const delegateCall = this.#frame.path.at(-1);
    const { kept } = this.#frame;
    if (delegateCall === undefined) {
      recorder.text(kind, block, text, n);
    } else if (kept.left < 0) {
      // What is past the budget was noted once, and is passed over now.
      recorder.passed(n);
    } else {
      const fits = takeCodePoints(text, kept.left);
      const isCut = fits.length < text.length;
      recorder.childText(`child-${kind}`, delegateCall, fits, isCut, n);
      kept.left = isCut ? -1 : kept.left - countCodePoints(fits);
    }
  }

  #emit(event: OutputEvent, record: (n: number) => void): void {
    this.#output.event(wrap(this.#frame.path, event), record);
  }
}

/** What a failed call's part says in the transcript. */
function errorText(output: JsonValue): string {
  const text = typeof output === 'string' ? output : JSON.stringify(output);
  const short = takeCodePoints(text, 500);
  return short.length < text.length ? `${short}…` : text;
}
