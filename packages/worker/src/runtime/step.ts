import type { LanguageModelV4 } from '@ai-sdk/provider';
import {
  jsonSchema,
  type ModelMessage,
  experimental_streamTextLowMemory as streamText,
  type TextStreamPart,
  type ToolSet,
  tool,
} from 'ai';
import { toTurnFailure } from './failure.js';
import type { JsonObject } from './json.js';
import { TurnModel } from './model.js';
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
  /** Called as soon as the provider has reported what the request cost, so also before a failure. */
  onUsage?: (usage: StepUsage) => void;
}

const MAX_RETRIES = 2;

/**
 * One model request (contract sections 3 and 4). Parts go to `onPart` in order, text storable and never split inside a
 * character. Retries, at most twice and waiting at most 20 s each, happen only before the first part. Nothing of the request
 * is open once the promise has settled.
 * Errors: `TurnFailure`; the abort signal's reason, at once, also where the provider hangs; what `onPart` threw.
 */
export async function runStep(request: StepRequest): Promise<StepOutcome> {
  const { abortSignal } = request;
  abortSignal.throwIfAborted();
  const controller = new AbortController();
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => {
      controller.abort(abortSignal.reason);
      reject(abortSignal.reason);
    };
  });
  abortSignal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([readStep(request, controller.signal), aborted]);
  } finally {
    abortSignal.removeEventListener('abort', onAbort);
    controller.abort(new DOMException('The step is over.', 'AbortError'));
  }
}

async function readStep(request: StepRequest, signal: AbortSignal): Promise<StepOutcome> {
  const reader = new StepReader(request);
  try {
    const parts = openStream(request, signal).getReader();
    for (let next = await parts.read(); !next.done; next = await parts.read()) {
      if (signal.aborted) break;
      await reader.take(next.value);
    }
    signal.throwIfAborted();
    return reader.outcome();
  } catch (error) {
    if (reader.consumerFault) throw reader.consumerFault.error;
    throw toTurnFailure(error, request.model instanceof TurnModel ? request.model.redact : undefined);
  }
}

function openStream(request: StepRequest, abortSignal: AbortSignal): ReadableStream<TextStreamPart<ToolSet>> {
  return streamText({
    model: request.model,
    ...(request.instructions === '' ? {} : { instructions: request.instructions }),
    messages: request.messages,
    ...(request.tools.length === 0 ? {} : { tools: toolSet(request.tools) }),
    maxRetries: MAX_RETRIES,
    abortSignal,
    // OpenAI keeps no copy; what a later request needs travels in the messages. Other providers ignore it.
    providerOptions: { openai: { store: false } },
    // A file that a model names by address is not fetched: it would go past the egress.
    experimental_download: (files) => Promise.resolve(files.map(() => null)),
    // The error is a part of the stream as well; without a callback the SDK prints it.
    onError: () => {},
  }).stream;
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
