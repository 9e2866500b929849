import type { AssistantModelMessage, ModelMessage, ToolModelMessage, UserModelMessage } from 'ai';
import { attachmentParts, type HistoryAttachment, newestOf } from './attachment.js';
import { wireCallId, wireToolName } from './call-id.js';
import { isJsonObject, type JsonObject, parseForeignJson } from './json.js';
import { cutForModel } from './tool-output.js';

export type ToolCallState = 'running' | 'suspended' | 'done' | 'error' | 'denied' | 'cancelled';

/** A session's transcript in its order. A step begins a new assistant message; so does a user message. */
export type HistoryEntry =
  | { type: 'user'; text: string; attachments: HistoryAttachment[] }
  | { type: 'step' }
  | { type: 'text'; text: string }
  | HistoryToolCall;

/** Only calls that were complete; one that was cut in its arguments is not in a history. */
export interface HistoryToolCall {
  type: 'tool-call';
  callId: string;
  toolName: string;
  inputJson: string;
  state: ToolCallState;
  outputJson: string | null;
  error: string | null;
  /** True: it was cancelled while it still waited for a person. */
  neverRan?: boolean;
  /** The id that the call had at its provider, and that provider's key (`providerKey` in `model.ts`). */
  providerCallId: string | null;
  providerKey: string | null;
}

export interface HistoryOptions {
  /** Of the model that will read the history. */
  providerKey: string;
  /** Code points of each tool output that the model sees. */
  maxToolOutputChars: number;
  acceptsFile: (mimeType: string) => boolean;
}

type AssistantContent = Exclude<AssistantModelMessage['content'], string>;

/**
 * A session's history for the next turn, as a strict provider takes it (contract section 5, 'What the model sees'): text, also
 * partial, stays; the calls of a step stand in one assistant message, directly followed by one tool message with a result for
 * each; no message is empty; reasoning is not given.
 *
 * User messages in a row stay apart: section 6 promises steered ones 'as user messages', and OpenAI, Anthropic and Google
 * take them so (the SDK joins them where an API wants turns to alternate).
 */
export async function buildHistory(entries: readonly HistoryEntry[], options: HistoryOptions): Promise<ModelMessage[]> {
  const usedIds = new Set<string>();
  const files = entries.flatMap((entry) => (entry.type === 'user' ? entry.attachments : []));
  const given = newestOf(files, options.acceptsFile);
  const messages: ModelMessage[] = [];
  let step: (Extract<HistoryEntry, { type: 'text' }> | HistoryToolCall)[] = [];
  const closeStep = () => {
    messages.push(...stepMessages(step, options, usedIds));
    step = [];
  };
  for (const entry of entries) {
    if (entry.type === 'text' || entry.type === 'tool-call') {
      step.push(entry);
      continue;
    }
    closeStep();
    if (entry.type === 'user') messages.push(...(await userMessages(entry, options, given)));
  }
  closeStep();
  return messages;
}

async function userMessages(
  { text, attachments }: Extract<HistoryEntry, { type: 'user' }>,
  { acceptsFile }: HistoryOptions,
  given: ReadonlySet<HistoryAttachment>,
): Promise<UserModelMessage[]> {
  const files = await attachmentParts(attachments, acceptsFile, given);
  if (text.trim() !== '') return [{ role: 'user', content: [{ type: 'text', text }, ...files] }];
  // Anthropic refuses blank text, and a message that says nothing was said nevertheless.
  return [{ role: 'user', content: files.length > 0 ? files : [{ type: 'text', text: '[The message is blank.]' }] }];
}

/** Text that stands after a call of the same step goes before it: what follows a call has to be its result. */
function stepMessages(
  step: readonly (Extract<HistoryEntry, { type: 'text' }> | HistoryToolCall)[],
  options: HistoryOptions,
  usedIds: Set<string>,
): ModelMessage[] {
  const text = step.map((entry) => (entry.type === 'text' ? entry.text : '')).join('');
  const calls = step
    .filter((entry) => entry.type === 'tool-call')
    .map((call) => ({
      call,
      toolCallId: idFor(call, options.providerKey, usedIds),
      toolName: wireToolName(call.toolName),
    }));
  const content: AssistantContent = [
    ...(text.trim() === '' ? [] : [{ type: 'text' as const, text }]),
    ...calls.map(({ call, ...named }) => ({ type: 'tool-call' as const, ...named, input: inputOf(call) })),
  ];
  if (content.length === 0) return [];
  const assistant: AssistantModelMessage = { role: 'assistant', content };
  if (calls.length === 0) return [assistant];
  const results: ToolModelMessage = {
    role: 'tool',
    content: calls.map(({ call, ...named }) => ({ type: 'tool-result', ...named, output: resultOf(call, options) })),
  };
  return [assistant, results];
}

function idFor(call: HistoryToolCall, providerKey: string, usedIds: Set<string>): string {
  return wireCallId(call.callId, call.providerKey === providerKey ? call.providerCallId : null, usedIds);
}

function inputOf({ inputJson }: HistoryToolCall): JsonObject {
  const input = parseForeignJson(inputJson);
  return isJsonObject(input) ? input : {};
}

type Output = Extract<ToolModelMessage['content'][number], { type: 'tool-result' }>['output'];

function resultOf(call: HistoryToolCall, { maxToolOutputChars }: HistoryOptions): Output {
  const problem = problemOf(call);
  // Of a denied call, the recorded output is the same sentence again.
  const output = call.outputJson === null || call.state === 'denied' ? undefined : outputText(call.outputJson);
  const said = [problem, output].filter((text) => text !== undefined && text !== '').join('\n');
  const value = cutForModel(said, maxToolOutputChars);
  return { type: problem === undefined ? 'text' : 'error-text', value };
}

/** What happened to a call that has no proper result. (contract section 5) */
function problemOf({ state, error, neverRan }: HistoryToolCall): string | undefined {
  switch (state) {
    case 'done':
      return undefined;
    case 'error':
      return error ?? 'The tool failed.';
    case 'cancelled':
      return neverRan
        ? 'Cancelled by the user before it was approved or answered; it was not run.'
        : `Cancelled by the user before it had a result; it may have run.${error ? ` ${error}` : ''}`;
    case 'denied':
      return error ?? 'The user denied this call.';
    case 'running':
      return 'Interrupted before it had a result; it may have run.';
    case 'suspended':
      return 'It waited for the user and was never answered; it was not run.';
  }
}

/** A JSON string is shown as the text that it holds. */
function outputText(outputJson: string): string {
  const parsed = outputJson.startsWith('"') ? parseForeignJson(outputJson) : undefined;
  return typeof parsed === 'string' ? parsed : outputJson;
}
