import type { AsyncLocalStorage } from 'node:async_hooks';
import { TooLarge } from './http-body.js';

type Fetch = typeof globalThis.fetch;

/** How long a message that nobody waits for may take: the end of a session, the notice that a call was given up. */
const FAREWELL_MS = 2_000;
/** Protocol versions from this date on have no sessions, and a closed connection is their notice that a call was given up. */
const FIRST_STATELESS_VERSION = '2026';

/** One JSON-RPC request under way, as its HTTP request sees it. */
export interface Exchange {
  /** Added to the request's own HTTP request, and to nothing else that is sent because of it. */
  readonly headers: Readonly<Record<string, string>>;
  /** Told when the answer ended: a request that is still open then will never be answered. */
  readonly onAnswerEnd: (error: Error) => void;
  /** Tells the server that nobody waits any more. Set once the request has been sent. */
  giveUp?: () => void;
  /** The HTTP status of the answer. */
  status?: number;
  /** The request named a session. */
  hasSession?: boolean;
}

export interface WireOptions {
  fetch: Fetch;
  /** The exchange of the code that runs. */
  exchanges: AsyncLocalStorage<Exchange>;
  /** A larger answer fails with `TooLarge`. */
  maxAnswerBytes: number;
  /** Gets each message that nobody waits for, so that a stop can. Such a promise never rejects. */
  onFarewell: (sent: Promise<void>) => void;
}

/** The server wants to be asked a second time, which a call that may act must not be. */
export class AskedTwice extends Error {
  override readonly name = 'AskedTwice';
}

/** The server does not know the session any more, as after a restart. It did not look at the request. */
export class SessionLost extends Error {
  override readonly name = 'SessionLost';

  constructor(
    readonly status: number,
    options: ErrorOptions,
  ) {
    super(`The session is unknown: HTTP status ${status}.`, options);
  }
}

/** The connection ended where an answer should have come. */
export class AnswerCut extends Error {
  override readonly name = 'AnswerCut';
}

/**
 * The `fetch` under an MCP client: adds a call's headers, lets each exchange send one request at most, bounds answers, and notices
 * an event stream that ends early, for which the client alone would wait until its time is over. No server gets to hold a
 * stream open for messages of its own: Turnkeep lists tools when a turn starts and offers no sampling.
 */
export function wireFetch(options: WireOptions): Fetch {
  const { exchanges, fetch, maxAnswerBytes } = options;
  return async (input, init = {}) => {
    if (init.method === 'GET') return new Response(null, { status: 405 });
    if (init.method === 'DELETE') return farewell(options, input, init);
    const exchange = exchanges.getStore();
    if (exchange === undefined) return bounded(await fetch(input, init), maxAnswerBytes, () => {});
    const response = await fetch(input, { ...init, headers: outgoingHeaders(exchange, options, input, init) });
    exchange.status ??= response.status;
    const isStream = response.headers.get('content-type')?.includes('text/event-stream') === true;
    return bounded(response, maxAnswerBytes, isStream ? exchange.onAnswerEnd : () => {});
  };
}

function outgoingHeaders(
  exchange: Exchange,
  options: WireOptions,
  input: Parameters<Fetch>[0],
  init: RequestInit,
): Headers {
  const headers = new Headers(init.headers);
  const request = requestIn(init.body);
  if (request === undefined) return headers;
  if (exchange.giveUp !== undefined) throw new AskedTwice('A call is sent once.');
  exchange.hasSession = headers.has('mcp-session-id');
  exchange.giveUp = () => {
    if ((headers.get('mcp-protocol-version') ?? '') >= FIRST_STATELESS_VERSION) return;
    const params = { requestId: request.id, reason: 'The call was given up.' };
    const body = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params });
    void farewell(options, input, { method: 'POST', headers: init.headers ?? {}, body });
  };
  for (const [name, value] of Object.entries(exchange.headers)) headers.set(name, value);
  return headers;
}

/** The JSON-RPC request in a body; `undefined` for a notification or an answer to the server. */
function requestIn(body: unknown): { id: unknown } | undefined {
  const message = JSON.parse(String(body)) as { id?: unknown; method?: unknown };
  return message.method !== undefined && message.id !== undefined ? { id: message.id } : undefined;
}

/** Sends what nobody waits for. Always answers 202: that it did not arrive is of no consequence. */
function farewell({ fetch, onFarewell }: WireOptions, input: Parameters<Fetch>[0], init: RequestInit): Response {
  const sent = async () => {
    const response = await fetch(input, { ...init, signal: AbortSignal.timeout(FAREWELL_MS) });
    await response.body?.cancel();
  };
  onFarewell(sent().catch(() => {}));
  return new Response(null, { status: 202 });
}

/** The response with its body under a bound. `onEnd` is called once everything that came has been read and worked on. */
function bounded(response: Response, maxBytes: number, onEnd: (error: Error) => void): Response {
  const { headers, status } = response;
  const init = { status, headers: [...headers] as [string, string][] };
  if (response.body === null) return new Response(null, init);
  let total = 0;
  // Whoever reads the body does so in microtasks; the next turn of the event loop finds the last message delivered.
  const ended = (error: Error) => void setImmediate(onEnd, error);
  const reader = response.body.getReader();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          controller.close();
          return ended(new AnswerCut('The connection ended before the answer.'));
        }
        total += value.byteLength;
        if (total > maxBytes) throw new TooLarge();
        controller.enqueue(value);
      } catch (error) {
        controller.error(error);
        ended(error instanceof Error ? error : new AnswerCut('The connection broke.', { cause: error }));
        reader.cancel(error).catch(() => {});
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(body, init);
}
