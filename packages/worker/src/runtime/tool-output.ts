import { countCodePoints, takeCodePoints } from '@turnkeep/shared/contract/text';
import type { ToolModelMessage } from 'ai';
import type { JsonValue } from './json.js';

/** How a tool call ended, as it is recorded. */
export interface ToolResult {
  callId: string;
  toolName: string;
  output: JsonValue;
  isError: boolean;
}

/**
 * What the model sees of an output: text as it is, other values as JSON, and of a long one the first `maxChars` code points
 * with a note of what was cut. (contract section 4, `maxToolOutputChars`)
 */
export function forModel(output: JsonValue, maxChars: number): string {
  return cutForModel(typeof output === 'string' ? output : JSON.stringify(output), maxChars);
}

/** The same for a text, or for JSON that is already text. Never empty: some providers refuse an empty result. */
export function cutForModel(text: string, maxChars: number): string {
  if (text === '') return '[The tool gave no output.]';
  if (text.length <= maxChars) return text;
  const total = countCodePoints(text);
  if (total <= maxChars) return text;
  return `${takeCodePoints(text, maxChars)}\n[Cut: ${maxChars} of ${total} characters are shown.]`;
}

/**
 * The message that answers a step's calls, to append to the run's context after the step's own. `providerCallIds` is that of
 * the step's outcome.
 */
export function toolMessage(
  results: readonly ToolResult[],
  providerCallIds: Record<string, string>,
  maxChars: number,
): ToolModelMessage {
  return {
    role: 'tool',
    content: results.map(({ callId, toolName, output, isError }) => ({
      type: 'tool-result',
      toolCallId: providerCallIds[callId] ?? callId,
      toolName,
      output: { type: isError ? 'error-text' : 'text', value: forModel(output, maxChars) },
    })),
  };
}
