/** A tool call as it stands in a request's history. */
interface HistoryCall {
  readonly id?: unknown;
  readonly type?: unknown;
  readonly function?: { readonly name?: unknown; readonly arguments?: unknown };
}

/** One message of a request's history, unchecked. */
export interface HistoryMessage {
  readonly role?: unknown;
  readonly content?: unknown;
  readonly tool_calls?: unknown;
  readonly tool_call_id?: unknown;
}

/** A chat completion request as far as it is JSON. */
export interface ModelRequestBody {
  readonly model?: unknown;
  readonly messages?: readonly HistoryMessage[];
  readonly tools?: unknown;
  readonly stream?: unknown;
  readonly stream_options?: { readonly include_usage?: unknown };
}

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const MAX_CALL_ID = 40;

/**
 * What a strict provider would object to in this request, in its words; `undefined` where it would answer. The rules
 * are the union of those that hosted providers apply: a model server of one's own is laxer, and would hide mistakes.
 */
export function objection(body: ModelRequestBody): string | undefined {
  try {
    if (typeof body.model !== 'string' || body.model === '') refuse('you must provide a model parameter');
    if (!Array.isArray(body.messages)) return "'messages' must be an array";
    checkText(body);
    checkTools(body.tools);
    checkHistory(body.messages);
    return undefined;
  } catch (error) {
    if (error instanceof Objection) return error.message;
    throw error;
  }
}

class Objection extends Error {}

function refuse(why: string): never {
  throw new Objection(why);
}

function checkText(value: unknown): void {
  if (typeof value === 'string') {
    if (!value.isWellFormed()) refuse(`a lone surrogate in ${JSON.stringify(value.slice(0, 80))}`);
    if (value.includes('\0')) refuse(`U+0000 in ${JSON.stringify(value.slice(0, 80))}`);
  } else if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) checkText(part);
  }
}

function checkTools(tools: unknown): void {
  if (tools === undefined) return;
  if (!Array.isArray(tools) || tools.length === 0) refuse("'tools' must be a non-empty array");
  const names = new Set<string>();
  for (const tool of tools) {
    const { name, parameters } = (tool?.function ?? {}) as { name?: unknown; parameters?: unknown };
    if (tool?.type !== 'function' || typeof name !== 'string' || !NAME.test(name)) refuse(`bad tool name: ${name}`);
    if (names.has(name)) refuse(`tool names must be unique: ${name}`);
    if (typeof parameters !== 'object' || parameters === null) refuse(`tool ${name} has no parameters schema`);
    names.add(name);
  }
}

function checkHistory(messages: readonly HistoryMessage[]): void {
  let awaited = new Set<string>();
  let started = false;
  for (const [at, message] of messages.entries()) {
    if (awaited.size > 0 && message.role !== 'tool') refuse(unanswered(awaited, at));
    switch (message.role) {
      case 'system':
      case 'developer':
        if (started) refuse(`messages[${at}]: a system message after the conversation began`);
        checkContent(message, at);
        break;
      case 'user':
        started = true;
        checkContent(message, at);
        break;
      case 'assistant':
        if (!started) refuse(`messages[${at}]: the first message must be the user's`);
        awaited = checkAssistant(message, at);
        break;
      case 'tool':
        checkResult(message, at, awaited);
        break;
      default:
        refuse(`messages[${at}]: unknown role ${JSON.stringify(message.role)}`);
    }
  }
  if (awaited.size > 0) refuse(unanswered(awaited, messages.length));
  if (!started) refuse('a conversation without a user message');
  if (messages.at(-1)?.role === 'assistant') refuse('the last message is an assistant message: nothing to answer');
}

function unanswered(ids: Set<string>, at: number): string {
  return `messages[${at}]: an assistant message with 'tool_calls' must be followed by results for: ${[...ids]}`;
}

function checkAssistant(message: HistoryMessage, at: number): Set<string> {
  const calls = message.tool_calls;
  if (calls === undefined) {
    checkContent(message, at);
    return new Set();
  }
  if (!Array.isArray(calls) || calls.length === 0) refuse(`messages[${at}]: 'tool_calls' must be a non-empty array`);
  const ids = new Set<string>();
  for (const call of calls as HistoryCall[]) {
    const id = call.id;
    if (typeof id !== 'string' || id === '' || id.length > MAX_CALL_ID) refuse(`messages[${at}]: bad call id ${id}`);
    if (ids.has(id)) refuse(`messages[${at}]: duplicate tool call id ${id}`);
    ids.add(id);
    checkCall(call, at);
  }
  return ids;
}

function checkCall(call: HistoryCall, at: number): void {
  const { name, arguments: json } = call.function ?? {};
  if (call.type !== 'function') refuse(`messages[${at}]: a call's type must be 'function'`);
  if (typeof name !== 'string' || !NAME.test(name)) refuse(`messages[${at}]: bad function name ${name}`);
  if (typeof json !== 'string') refuse(`messages[${at}]: arguments must be a string`);
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    refuse(`messages[${at}]: arguments are not JSON: ${json.slice(0, 80)}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    refuse(`messages[${at}]: arguments are no JSON object: ${json.slice(0, 80)}`);
  }
}

function checkResult(message: HistoryMessage, at: number, awaited: Set<string>): void {
  const id = message.tool_call_id;
  if (typeof id !== 'string' || !awaited.delete(id)) {
    refuse(`messages[${at}]: a 'tool' message must answer a preceding 'tool_calls'; ${JSON.stringify(id)} does not`);
  }
  if (typeof message.content !== 'string' && !Array.isArray(message.content)) {
    refuse(`messages[${at}]: a tool message's content must be text`);
  }
}

function checkContent(message: HistoryMessage, at: number): void {
  const { content, role } = message;
  const parts = Array.isArray(content) ? content : undefined;
  if (typeof content !== 'string' && parts === undefined) refuse(`messages[${at}]: ${role} without content`);
  if (content === '' || parts?.length === 0) refuse(`messages[${at}]: ${role} message with empty content`);
  for (const part of parts ?? []) {
    if (part?.type === 'text' && (typeof part.text !== 'string' || part.text === '')) {
      refuse(`messages[${at}]: text content blocks must be non-empty`);
    }
  }
}

/** The text of the last user message: what the scripts of `ModelServer` are keyed by. */
export function lastUserText(body: ModelRequestBody): string {
  const last = body.messages?.findLast((message) => message.role === 'user');
  return textOf(last?.content);
}

/** The text of a message's content, whichever of its two forms it has. */
export function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part) => (typeof part?.text === 'string' ? part.text : '')).join('');
}
