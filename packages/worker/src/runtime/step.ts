import type { LanguageModelV4 } from '@ai-sdk/provider';
import {
  jsonSchema,
  type ModelMessage,
  experimental_streamLanguageModelCall as streamModelCall,
  type ToolSet,
  tool,
} from 'ai';
import { toTurnFailure } from './failure.js';
import type { JsonObject } from './json.js';
import { TurnModel } from './model.js';
import { type RetryWaits, withRetries } from './retry.js';
import { StepReader } from './step-reader.js';

// The SDK prints its warnings to the console, which is for structured logs alone.
globalThis.AI_SDK_LOG_WARNINGS = false;

/** What a step hands on while the model speaks. `callId` and `id` are Turnkeep's, never a provider's. */
export type StepPart =
  | { type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end'; id: string }
  | { type: 'text-delta' | 'reasoning-delta'; id: string; delta: string }
  | { type: 'tool-input-start'; callId: string; toolName: string }
  | { type: 'tool-input-delta'; callId: string; delta: string }
  | {
      type: 'tool-call';
      callId: string;
      toolName: string;
      /** `{}` where `invalid` is set. */
      input: JsonObject;
      /** Set: the call is not to be run; the text tells the model why, as the call's error. */
      invalid?: string;
    };

/** A tool as the model sees it. An agent's HTTP tool is one. */
export interface ToolDefinition {
  name: string;
  description: string;
  /** JSON Schema, `type` object. */
  inputSchema: Record<string, unknown>;
}

export interface StepUsage {
  inputTokens: number;
  outputTokens: number;
}

export interface StepOutcome {
  usage: StepUsage;
  /**
   * What the assistant said, to append to the run's context; at most one message, none for an empty answer. What the
   * provider wants back (thought signatures and the like) is in it. Serialisable as JSON.
   */
  messages: ModelMessage[];
  /** The AI SDK's word: `stop`, `tool-calls`, `length`, `content-filter`, `other`. */
  finishReason: string;
  /** For each call, the id under which it stands in `messages`; its result has to carry the same. */
  providerCallIds: Record<string, string>;
}

export interface StepRequest {
  model: LanguageModelV4;
  instructions: string;
  messages: ModelMessage[];
  tools: readonly ToolDefinition[];
  abortSignal: AbortSignal;
  newCallId: () => string;
  /** Awaited before the next part is read. What it throws ends the step and is thrown on as it is. */
  onPart: (part: StepPart) => void | Promise<void>;
  /** Called whenever the provider says what the request has cost so far, so also before a failure or an abort. */
  onUsage?: (usage: StepUsage) => void;
  /** For tests: shorter waits between two tries. */
  retryWaits?: RetryWaits;
}

/** The providers that count tokens before the end, in raw events that cost a little to hand on. */
const COUNTS_EARLY = /^(anthropic|google)/;

/**
 * One model request (contract sections 3 and 4). Parts go to `onPart` in order: text storable, never split inside a
 * character, and short enough for an event. Retries (see `retry.ts`) happen only before the first part. Nothing of the request
 * is open once the promise has settled.
 * Errors: `TurnFailure`; the abort signal's reason, at once, also where the provider hangs; what `onPart` threw.
 */
export async function runStep(request: StepRequest): Promise<StepOutcome> {
  const { abortSignal } = request;
  abortSignal.throwIfAborted();
  const controller = new AbortController();
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(abortSignal.reason);
  });
  abortSignal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([readStep(request, controller.signal), aborted]);
  } catch (error) {
    controller.abort(new DOMException('The step is over.', 'AbortError'));
    throw error;
  } finally {
    abortSignal.removeEventListener('abort', onAbort);
  }
}

async function readStep(request: StepRequest, signal: AbortSignal): Promise<StepOutcome> {
  const reader = new StepReader(request);
  try {
    const { stream } = await withRetries(() => openStream(request, signal), signal, request.retryWaits);
    const parts = stream.getReader();
    for (let next = await parts.read(); !next.done; next = await parts.read()) {
      signal.throwIfAborted();
      await reader.take(next.value);
    }
    signal.throwIfAborted();
    return reader.outcome();
  } catch (error) {
    if (reader.consumerFault) throw reader.consumerFault.error;
    throw toTurnFailure(error, request.model instanceof TurnModel ? request.model.redact : undefined);
  }
}

/**
 * The SDK's innermost function and not `streamText`: the loop around it is ours (design, 'One turn'), and without the SDK's
 * own a delta costs a quarter (7 against 29 µs) and a step as well (0.3 against 1.0 ms).
 */
function openStream(request: StepRequest, abortSignal: AbortSignal) {
  return streamModelCall({
    model: request.model,
    ...(request.instructions.trim() === '' ? {} : { instructions: request.instructions }),
    messages: request.messages,
    ...(request.tools.length === 0 ? {} : { tools: toolSet(request.tools) }),
    abortSignal,
    includeRawChunks: COUNTS_EARLY.test(request.model.provider),
    // OpenAI keeps no copy; what a later request needs travels in the messages. Other providers ignore it.
    providerOptions: { openai: { store: false } },
    // A file that a model names by address is not fetched: it would go past the egress.
    download: (files) => Promise.resolve(files.map(() => null)),
  });
}

/** Without `execute`, so that the SDK hands calls on instead of running them, and in the order of the agent's list. */
function toolSet(tools: readonly ToolDefinition[]): ToolSet {
  return Object.fromEntries(
    tools.map(({ name, description, inputSchema }) => [
      name,
      tool({ description, inputSchema: jsonSchema<JsonObject>(inputSchema) }),
    ]),
  );
}
