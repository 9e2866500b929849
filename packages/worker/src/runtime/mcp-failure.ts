import { MCPClientError } from '@ai-sdk/mcp';
import { takeCodePoints, toStorable } from '@turnkeep/shared/contract/text';
import { EgressRefused } from './egress-refused.js';
import { TooLarge } from './http-body.js';
import { TimedOut } from './mcp-bound.js';
import { AnswerCut, AskedTwice, SessionLost } from './mcp-wire.js';

/** A server's own words, in code points; more is no message but a page. */
const MAX_WORDS = 2_000;
const NO_MCP = 'it does not answer as an MCP server does';

/** No connection, so nothing was called; `cause` says why. */
export class NotOpened extends Error {
  override readonly name = 'NotOpened';
}

/** The server understood a request and refused it: the connection is sound. */
export function isRefusal(error: unknown): error is MCPClientError {
  return MCPClientError.isInstance(error) && error.code !== undefined && error.statusCode === undefined;
}

/**
 * Why a server could not be asked: a clause with the server as `it`, fit for the model. A network error's own text names
 * addresses of the inside, so only what a server says about a request is repeated.
 */
export function reasonOf(thrown: unknown): string {
  const error = unwrapped(thrown);
  if (error instanceof EgressRefused) return `it was not asked. ${error.message}`;
  if (error instanceof TooLarge) return 'its answer is too large';
  if (error instanceof TimedOut) return 'it did not answer in time';
  if (error instanceof AskedTwice) return 'it wants more input than the call has';
  if (error instanceof AnswerCut) return 'the connection ended before it had answered';
  if (error instanceof SessionLost) {
    return `it refused the request with HTTP status ${error.status}, as a server does that has restarted`;
  }
  const code = codeOf(error);
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'its host name cannot be resolved';
  if (code === 'ECONNREFUSED') return 'it refuses connections and may not be running';
  if (code !== undefined && /CERT|^ERR_TLS/.test(code)) return 'its TLS certificate is not valid';
  if (MCPClientError.isInstance(error)) return reasonOfProtocol(error);
  // What fetch throws is a TypeError; the rest comes from reading the answer.
  const isNetwork = code !== undefined || error instanceof TypeError;
  return isNetwork ? 'it cannot be reached, or the connection broke' : NO_MCP;
}

/** What a failed call tells the model, in sentences; `server` is the entry's name. */
export function callFailure(server: string, thrown: unknown): string {
  const error = unwrapped(thrown);
  if (isRefusal(error)) return wordsOf(error);
  const isOpen = !(error instanceof NotOpened);
  const reason = `The server ${server} gave no result: ${reasonOf(isOpen ? error : error.cause).replace(/\.$/, '')}.`;
  if (error instanceof SessionLost) return `${reason} The tool did not run; it can be called again.`;
  return !isOpen || neverArrived(error) ? `${reason} The tool did not run.` : `${reason} The tool may have run.`;
}

/** By the protocol of 2026 the client hides what went wrong behind an error of its own. */
function unwrapped(error: unknown): unknown {
  const isShell = MCPClientError.isInstance(error) && error.code === undefined && error.statusCode === undefined;
  return isShell && error.cause instanceof Error ? error.cause : error;
}

function neverArrived(error: unknown): boolean {
  return error instanceof EgressRefused || ['ENOTFOUND', 'EAI_AGAIN', 'ECONNREFUSED'].includes(codeOf(error) ?? '');
}

function reasonOfProtocol(error: MCPClientError): string {
  if (error.statusCode === 401 || error.statusCode === 403) return `it wants a sign-in (HTTP ${error.statusCode})`;
  if ((error.statusCode ?? 0) >= 300) return `it answered with HTTP status ${error.statusCode}`;
  if (isRefusal(error)) return `it said: ${wordsOf(error)}`;
  return NO_MCP;
}

/** What a server said when it refused a request: storable, at most 2,000 code points. */
export function wordsOf(error: MCPClientError): string {
  return takeCodePoints(toStorable(error.message), MAX_WORDS);
}

function codeOf(error: unknown): string | undefined {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 5; cause = cause.cause, depth += 1) {
    if ('code' in cause && typeof cause.code === 'string') return cause.code;
    if (cause instanceof AggregateError && cause.errors.length > 0) return codeOf(cause.errors[0]);
  }
  return undefined;
}
