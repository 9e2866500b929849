import { APICallError, InvalidResponseDataError, JSONParseError, TypeValidationError } from '@ai-sdk/provider';
import type { ErrorCode } from '@turnkeep/shared/contract/execution';
import { takeCodePoints, toStorable } from '@turnkeep/shared/contract/text';
import { EgressRefused } from './egress-refused.js';
import { isJsonObject, parseForeignJson } from './json.js';

/**
 * What ends a turn with status `error`. `message` is written for a user's eyes (contract section 4, event `error`): no key,
 * no address. `cause` is fit for the log: it carries no credential, no message's text and no request.
 */
export class TurnFailure extends Error {
  override readonly name = 'TurnFailure';

  constructor(
    readonly code: ErrorCode,
    message: string,
    options: { cause?: unknown } = {},
  ) {
    super(message, options);
  }
}

/** Takes what must not be shown out of a text. */
export type Redact = (text: string) => string;

/**
 * Turns whatever a model request threw into the failure that the user sees. `redact` takes the model's credential out of the
 * provider's words. A `TurnFailure` comes back as it is. Total: what is not recognised is `internal`.
 */
export function toTurnFailure(thrown: unknown, redact: Redact = (text) => text): TurnFailure {
  if (thrown instanceof TurnFailure) return thrown;
  const error = loggable(thrown, redact);
  const reason = (text: string | undefined) => cleanReason(text, redact);
  if (thrown instanceof EgressRefused) return new TurnFailure('model_refused', thrown.message, { cause: error });
  if (isMalformed(thrown)) return broken('The model sent something that cannot be read.', error);
  const status = statusOf(thrown);
  if (status === 200) return broken('The connection to the model broke before the answer was complete.', error);
  if (status !== undefined) return fromStatus(status, reason(messageOf(thrown)), error);
  if (APICallError.isInstance(thrown)) return unreachable(error);
  if (isNetworkFault(thrown)) return broken('The connection to the model broke before the answer was complete.', error);
  if (isProviderWord(thrown)) return fromStreamWords(reason(messageOf(thrown)), error);
  return new TurnFailure('internal', 'Something went wrong on our side. Send the message again.', { cause: error });
}

/** The failure of a stream that stopped early: `text` says how. (contract section 4, `model_stream_broken`) */
export function broken(text: string, cause?: unknown): TurnFailure {
  return new TurnFailure('model_stream_broken', `${text} Send the message again.`, { cause });
}

function unreachable(cause: unknown): TurnFailure {
  const text = 'The model cannot be reached. Check that its address is right and that it is running, then try again.';
  return new TurnFailure('model_unavailable', text, { cause });
}

function fromStatus(status: number, reason: string, cause: unknown): TurnFailure {
  const refused = (text: string) => new TurnFailure('model_refused', text, { cause });
  const unavailable = (text: string) => new TurnFailure('model_unavailable', text, { cause });
  if (status !== 429 && CONTEXT_TOO_LONG.test(reason)) return contextTooLong(reason, cause);
  if (status === 429) return unavailable('The model provider gets too many requests from here. Try again in a while.');
  if (status === 408 || status >= 500) {
    return unavailable(withReason(`The model provider has a fault (${status})`, reason, 'Try again in a while.'));
  }
  if (status === 413) return contextTooLong(reason, cause);
  // The words of a 401 are left out: some providers repeat a part of the key in them.
  if (status === 401 || status === 403) {
    return refused(`The model provider refused the credential (${status}). Check the API key of this agent.`);
  }
  if (status === 402) return refused(withReason('The model provider asks for payment (402)', reason));
  if (status === 404) {
    return refused(withReason('The model or its address does not exist (404)', reason, "Check the agent's model."));
  }
  if (status < 400)
    return refused(`The address does not answer as a model would (${status}). Check the agent's model.`);
  return refused(withReason(`The model provider refused the request (${status})`, reason));
}

function fromStreamWords(reason: string, cause: unknown): TurnFailure {
  if (CONTEXT_TOO_LONG.test(reason)) return contextTooLong(reason, cause);
  return broken(withReason('The model broke off its answer', reason), cause);
}

function contextTooLong(reason: string, cause: unknown): TurnFailure {
  const text = withReason('The conversation no longer fits into the model', reason, 'Start a new session.');
  return new TurnFailure('model_refused', text, { cause });
}

/**
 * The SDK's errors hold the whole request and the model's words, so what the log gets is a new error: names, status and
 * system codes of the chain, and the innermost message where it is the network's.
 */
function loggable(error: unknown, redact: Redact): Error {
  const chain: string[] = [];
  let cause = error;
  for (let depth = 0; cause instanceof Error && depth < 5; cause = cause.cause, depth += 1) {
    const code = 'code' in cause && typeof cause.code === 'string' ? ` ${cause.code}` : '';
    const text = code === '' && !(cause instanceof TypeError) ? '' : `: ${cause.message}`;
    chain.push(`${cause.name}${code} ${statusOf(cause) ?? ''}`.trim() + text);
  }
  const safe = new Error(redact(chain.join(', because of ')) || typeof error);
  if (error instanceof Error && error.stack) safe.stack = `${safe.message}${framesOf(error.stack)}`;
  return safe;
}

/** A stack without its first lines, which repeat the message. */
function framesOf(stack: string): string {
  const at = stack.search(/\n\s+at /);
  return at < 0 ? '' : stack.slice(at);
}

/** How OpenAI, Anthropic, Google, llama.cpp, vLLM, Ollama and the gateways in front of them say it. */
const CONTEXT_TOO_LONG =
  /context[_ -]?(length|window|size|limit)|maximum context|prompt is too long|input is too long|too many (input )?tokens|token (count|limit).{0,40}exceed|exceed.{0,60}(context|tokens)/i;

function withReason(text: string, reason: string, advice = ''): string {
  const said = reason === '' ? `${text}.` : `${text}: ${reason.replace(/[.\s]*$/, '')}.`;
  return advice === '' ? said : `${said} ${advice}`;
}

/** At most 300 characters of what a provider said, without key, addresses and line breaks. */
function cleanReason(text: string | undefined, redact: Redact): string {
  const said = redact(toStorable(text ?? ''))
    .replace(/\b[a-z][a-z0-9+.-]*:\/\/\S+/gi, '[address]')
    .replace(/(\[[0-9a-f:.]*:[0-9a-f:.]*\]|\b\d{1,3}(\.\d{1,3}){3})(:\d+)?/gi, '[address]')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: a provider's text goes to a terminal or a log as well
    .replace(/[\s\u0000-\u001f\u007f]+/g, ' ')
    .trim();
  const short = takeCodePoints(said, 300);
  return short.length < said.length ? `${short}…` : short;
}

function isMalformed(error: unknown): boolean {
  return (
    JSONParseError.isInstance(error) ||
    TypeValidationError.isInstance(error) ||
    InvalidResponseDataError.isInstance(error)
  );
}

/** `statusCode` stands on an answer's error and on an error that a provider reports in the middle of a stream. */
function statusOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !('statusCode' in error)) return undefined;
  return typeof error.statusCode === 'number' ? error.statusCode : undefined;
}

function messageOf(error: unknown): string | undefined {
  // The SDK falls back to the HTTP status text where a body is not in the provider's own form; the body says more.
  if (APICallError.isInstance(error) && error.data === undefined) return bodyWords(error.responseBody) ?? error.message;
  if (typeof error === 'string') return error;
  if (typeof error !== 'object' || error === null || !('message' in error)) return undefined;
  return typeof error.message === 'string' ? error.message : undefined;
}

/** What gateways and small servers answer: `{error: '…'}`, `{error: {message}}`, `{message}`, `{detail}`. */
function bodyWords(body: string | undefined): string | undefined {
  const parsed = parseForeignJson(body ?? '');
  if (!isJsonObject(parsed)) return undefined;
  const inner = isJsonObject(parsed.error) ? parsed.error.message : undefined;
  return [inner, parsed.error, parsed.message, parsed.detail].find((words) => typeof words === 'string');
}

function isNetworkFault(error: unknown): boolean {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 5; cause = cause.cause, depth += 1) {
    if (cause.message === 'terminated' || cause.message === 'fetch failed') return true;
    if ('code' in cause && typeof cause.code === 'string' && /^(E[A-Z]+|UND_ERR_\w+)$/.test(cause.code)) return true;
  }
  return false;
}

/** An error event of the provider's stream that says nothing of a status: its own words are all there is. */
function isProviderWord(error: unknown): boolean {
  if (error instanceof Error) return error.name === 'AI_StreamProviderError';
  return messageOf(error) !== undefined;
}
