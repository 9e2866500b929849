import type { HttpTool } from '@turnkeep/shared/contract/agent';
import type { Egress } from './egress.js';
import { EgressRefused } from './egress-refused.js';
import { readBody, TooLarge } from './http-body.js';
import type { JsonObject, JsonValue } from './json.js';

export interface HttpToolCall {
  tool: HttpTool;
  input: JsonObject;
  executionId: string;
  toolCallId: string;
  egress: Pick<Egress, 'fetch'>;
  abortSignal: AbortSignal;
}

export interface ToolOutcome {
  /** Storable (contract section 8). JSON where the tool answered JSON, else text. */
  output: JsonValue;
  isError: boolean;
}

/**
 * Calls an HTTP tool once (contract section 3): arguments as the JSON body, or as the query string for GET, where nested
 * values stand as JSON. Whatever goes wrong on the way is an output that the model can read, with `isError`; an answer outside
 * 2xx is `{status, body}`. `timeoutMs` covers the whole call, body included; an answer may have 32 MiB.
 * Errors: the abort signal's reason, at once.
 */
export async function callHttpTool(call: HttpToolCall): Promise<ToolOutcome> {
  const { abortSignal, tool } = call;
  abortSignal.throwIfAborted();
  const controller = new AbortController();
  let onAbort = () => {};
  let timer: NodeJS.Timeout | undefined;
  const stopped = new Promise<ToolOutcome>((resolve, reject) => {
    onAbort = () => reject(abortSignal.reason);
    timer = setTimeout(() => resolve(failed(`The tool did not answer within ${tool.timeoutMs} ms.`)), tool.timeoutMs);
  });
  abortSignal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([request(call, controller.signal), stopped]);
  } finally {
    clearTimeout(timer);
    abortSignal.removeEventListener('abort', onAbort);
    controller.abort(new DOMException('The call is over.', 'AbortError'));
  }
}

async function request(call: HttpToolCall, signal: AbortSignal): Promise<ToolOutcome> {
  try {
    const { url, init } = requestOf(call);
    const response = await call.egress.fetch(url, { ...init, signal });
    const body = await readBody(response);
    return response.ok
      ? { output: body, isError: false }
      : { output: { status: response.status, body }, isError: true };
  } catch (error) {
    return failed(explain(error));
  }
}

function requestOf({ tool, input, executionId, toolCallId }: HttpToolCall): { url: string; init: RequestInit } {
  const headers: Record<string, string> = {
    accept: 'application/json, text/*;q=0.9, */*;q=0.1',
    'x-turnkeep-execution-id': executionId,
    'x-turnkeep-tool-call-id': toolCallId,
    'idempotency-key': toolCallId,
  };
  if (tool.method === 'GET') return { url: withQuery(tool.url, input), init: { method: 'GET', headers } };
  headers['content-type'] = 'application/json';
  return { url: tool.url, init: { method: tool.method, headers, body: JSON.stringify(input) } };
}

/** Arguments replace parameters of the same name in the tool's URL; `null` leaves one out. */
function withQuery(address: string, input: JsonObject): string {
  const url = new URL(address);
  for (const [name, value] of Object.entries(input)) {
    if (value !== null) url.searchParams.set(name, typeof value === 'object' ? JSON.stringify(value) : String(value));
  }
  return url.href;
}

function failed(output: string): ToolOutcome {
  return { output, isError: true };
}

/** A plain sentence: a network error's own text names addresses of the inside. */
function explain(error: unknown): string {
  if (error instanceof EgressRefused) return `The tool was not called. ${error.message}`;
  if (error instanceof TooLarge) return error.message;
  const code = codeOf(error);
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return "The tool's host name cannot be resolved.";
  if (code === 'ECONNREFUSED') return 'The tool refuses connections; it may not be running.';
  if (code?.startsWith('CERT_') || code?.includes('CERTIFICATE') || code?.startsWith('ERR_TLS')) {
    return "The tool's TLS certificate is not valid.";
  }
  return 'The tool cannot be reached, or the connection broke before it had answered; it may have run.';
}

function codeOf(error: unknown): string | undefined {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 5; cause = cause.cause, depth += 1) {
    if ('code' in cause && typeof cause.code === 'string') return cause.code;
    if (cause instanceof AggregateError && cause.errors.length > 0) return codeOf(cause.errors[0]);
  }
  return undefined;
}
