import type { StepUsage } from './step.js';

/**
 * What a provider's raw event says of tokens, before the answer is complete: Anthropic counts the input in its first event,
 * Google in each. So a turn that is stopped or breaks has its usage too. `undefined`: the event says nothing.
 */
export function earlyUsage(event: unknown, before: StepUsage | undefined): StepUsage | undefined {
  const { message, usage, usageMetadata } = (event ?? {}) as RawEvent;
  const anthropic = message?.usage ?? usage;
  const { input_tokens: fresh, cache_creation_input_tokens: written, cache_read_input_tokens: read } = anthropic ?? {};
  const inputTokens = fresh === undefined ? usageMetadata?.promptTokenCount : sum(fresh, written, read);
  const outputTokens =
    anthropic?.output_tokens ??
    (usageMetadata && sum(usageMetadata.candidatesTokenCount, usageMetadata.thoughtsTokenCount));
  if (inputTokens === undefined && outputTokens === undefined) return undefined;
  return {
    inputTokens: inputTokens ?? before?.inputTokens ?? 0,
    outputTokens: outputTokens ?? before?.outputTokens ?? 0,
  };
}

interface AnthropicUsage {
  input_tokens?: number;
  cache_creation_input_tokens?: number | null;
  cache_read_input_tokens?: number | null;
  output_tokens?: number;
}

interface RawEvent {
  message?: { usage?: AnthropicUsage };
  usage?: AnthropicUsage;
  usageMetadata?: { promptTokenCount?: number; candidatesTokenCount?: number; thoughtsTokenCount?: number };
}

function sum(...counts: (number | null | undefined)[]): number {
  return counts.reduce<number>((total, count) => total + (count ?? 0), 0);
}
