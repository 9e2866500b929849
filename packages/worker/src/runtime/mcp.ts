import type { McpTool } from '@turnkeep/shared/contract/agent';
import type { ToolOutcome } from './http-tool.js';
import type { JsonObject } from './json.js';
import { within } from './mcp-bound.js';
import { McpConnection } from './mcp-connection.js';
import { callFailure, NotOpened, reasonOf } from './mcp-failure.js';
import { listServer, type ServerListing } from './mcp-listing.js';
import { type McpToolOffer, offersOf } from './mcp-offer.js';
import { outcomeOf } from './mcp-result.js';

export type { McpToolOffer } from './mcp-offer.js';

export interface McpListing {
  tools: McpToolOffer[];
  /** Sentences for the model, about servers that could not be asked or have more tools than may be offered. */
  notes: string[];
}

export interface McpClientsOptions {
  /** The egress's, so that the network's rules hold here too. */
  fetch: typeof globalThis.fetch;
  /** How long a listing serves. Default: 60,000; one that failed serves a sixth of it. */
  cacheMs?: number;
  now?: () => number;
  /** How long a server has to list its tools, or to begin a session. Default: 10,000. */
  listTimeoutMs?: number;
  /** How long a call may take. Default: 60,000. */
  callTimeoutMs?: number;
  /** How long a session stays open after its last call. Default: 300,000. */
  idleMs?: number;
}

export interface McpCallContext {
  executionId: string;
  toolCallId: string;
  abortSignal: AbortSignal;
}

/** A listing under way or done; `expiresAt` is set when it is done. */
interface CachedListing {
  listing: Promise<ServerListing | { reason: string }>;
  expiresAt: number;
}

/** The connection of one execution to one server. */
interface OpenConnection {
  connection: Promise<McpConnection>;
  calls: number;
  idle?: NodeJS.Timeout;
}

const MAX_LISTING_BYTES = 8 * 1024 * 1024;
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

/**
 * The MCP servers of a worker's agents (contract section 3). A listing is shared by all turns for a minute. Calls of one execution
 * share a connection to each server, since a server may keep state in its session (a browser, a working directory) that is
 * nobody else's business; it is opened at the first call and closed when idle. A call is sent once: what a lost session or a
 * broken connection did to it is told to the model, never tried out.
 */
export class McpClients {
  readonly #options: Required<McpClientsOptions>;
  readonly #listings = new Map<string, CachedListing>();
  readonly #connections = new Map<string, OpenConnection>();
  /** URLs of servers that speak a version before 2026, by their last listing. */
  readonly #legacy = new Set<string>();
  readonly #farewells = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(options: McpClientsOptions) {
    const defaults = { cacheMs: 60_000, now: Date.now, listTimeoutMs: 10_000, callTimeoutMs: 60_000, idleMs: 300_000 };
    this.#options = { ...defaults, ...options };
  }

  /**
   * The tools of an agent's MCP entries, servers asked at the same time. Their names differ from one another and from `taken` (the
   * names of the agent's other tools). Never fails for a server's sake. Errors: the abort signal's reason, at once.
   */
  async list(servers: readonly McpTool[], abortSignal: AbortSignal, taken: Iterable<string> = []): Promise<McpListing> {
    abortSignal.throwIfAborted();
    const listings = await raceAbort(Promise.all(servers.map(({ url }) => this.#listing(url))), abortSignal);
    const names = new Set(taken);
    const result: McpListing = { tools: [], notes: [] };
    for (const [index, server] of servers.entries()) {
      const listing = listings[index]!;
      if ('reason' in listing) {
        result.notes.push(`The tools of the server ${server.name} are not available now: ${sentence(listing.reason)}`);
        continue;
      }
      result.tools.push(...offersOf(server, listing.tools, names));
      if (listing.isCut) {
        const shown = `only the first ${listing.tools.length} are offered.`;
        result.notes.push(`The server ${server.name} has more tools than can be offered: ${shown}`);
      }
    }
    return result;
  }

  /**
   * Calls a tool once, with the headers of an HTTP tool's call. Whatever goes wrong is an output that the model can read, with
   * `isError`; an answer may have 32 MiB. Errors: the abort signal's reason, at once.
   */
  async call(offer: McpToolOffer, input: JsonObject, context: McpCallContext): Promise<ToolOutcome> {
    const { abortSignal } = context;
    abortSignal.throwIfAborted();
    try {
      return await within(this.#options.callTimeoutMs, abortSignal, (signal) =>
        this.#callOnce(offer, input, context, signal),
      );
    } catch (error) {
      if (abortSignal.aborted) throw abortSignal.reason;
      return { output: callFailure(offer.server.name, error), isError: true };
    }
  }

  /** Ends every session and lets go of what is under way. Resolves when nothing runs any more, after two seconds at most. */
  async close(): Promise<void> {
    this.#closing.abort(new DOMException('The worker stops.', 'AbortError'));
    const open = [...this.#connections.values()];
    this.#connections.clear();
    await Promise.all(open.map(closeConnection));
    await Promise.all([...this.#listings.values()].map(({ listing }) => listing));
    while (this.#farewells.size > 0) await Promise.all(this.#farewells);
  }

  #listing(url: string): CachedListing['listing'] {
    const { cacheMs, now } = this.#options;
    for (const [key, { expiresAt }] of this.#listings) if (expiresAt <= now()) this.#listings.delete(key);
    const known = this.#listings.get(url);
    if (known !== undefined) return known.listing;
    const cached: CachedListing = { listing: this.#ask(url), expiresAt: Number.POSITIVE_INFINITY };
    this.#listings.set(url, cached);
    void cached.listing.then((listing) => {
      cached.expiresAt = now() + ('reason' in listing ? cacheMs / 6 : cacheMs);
    });
    return cached.listing;
  }

  /** Not under a turn's signal: other turns may wait for the same answer. */
  async #ask(url: string): Promise<ServerListing | { reason: string }> {
    try {
      const listing = await within(this.#options.listTimeoutMs, this.#closing.signal, (signal) =>
        listServer({ ...this.#connectionOptions(url, MAX_LISTING_BYTES), isLegacy: false, signal }),
      );
      if (listing.isLegacy) this.#legacy.add(url);
      else this.#legacy.delete(url);
      return listing;
    } catch (error) {
      return { reason: reasonOf(error) };
    }
  }

  async #callOnce(
    offer: McpToolOffer,
    input: JsonObject,
    { executionId, toolCallId }: McpCallContext,
    signal: AbortSignal,
  ): Promise<ToolOutcome> {
    const key = JSON.stringify([executionId, offer.server.url]);
    const open = this.#connect(key, offer.server.url);
    open.calls += 1;
    clearTimeout(open.idle);
    try {
      const connection = await open.connection.catch((cause: unknown) => {
        throw new NotOpened('The connection could not be opened.', { cause });
      });
      signal.throwIfAborted();
      const headers = {
        'x-turnkeep-execution-id': executionId,
        'x-turnkeep-tool-call-id': toolCallId,
        'idempotency-key': toolCallId,
      };
      const tool = { name: offer.serverToolName, inputSchema: offer.inputSchema };
      return outcomeOf(await connection.callTool(tool, input, headers, signal));
    } finally {
      await this.#release(key, open);
    }
  }

  #connect(key: string, url: string): OpenConnection {
    const known = this.#connections.get(key);
    if (known !== undefined) return known;
    const options = this.#connectionOptions(url, MAX_ANSWER_BYTES);
    const connection = within(this.#options.listTimeoutMs, this.#closing.signal, (signal) =>
      McpConnection.open({ ...options, isLegacy: this.#legacy.has(url), signal }),
    );
    const open: OpenConnection = { connection, calls: 0 };
    this.#connections.set(key, open);
    // No call finds a connection that could not be opened, not even one that comes in the same tick.
    connection.catch(() => this.#forget(key, open));
    return open;
  }

  /** A connection that broke serves no further call, and is closed when the calls that share it are through. */
  async #release(key: string, open: OpenConnection): Promise<void> {
    open.calls -= 1;
    const connection = await open.connection.catch(() => undefined);
    if (connection?.isSound === false) this.#forget(key, open);
    if (open.calls > 0) return;
    if (this.#connections.get(key) !== open) return this.#keep(closeConnection(open));
    clearTimeout(open.idle);
    open.idle = setTimeout(() => {
      this.#forget(key, open);
      this.#keep(closeConnection(open));
    }, this.#options.idleMs).unref();
  }

  #forget(key: string, open: OpenConnection): void {
    if (this.#connections.get(key) === open) this.#connections.delete(key);
  }

  #connectionOptions(url: string, maxAnswerBytes: number) {
    return { url, fetch: this.#options.fetch, maxAnswerBytes, onFarewell: (sent: Promise<void>) => this.#keep(sent) };
  }

  /** What nobody waits for but `close`. */
  #keep(farewell: Promise<void>): void {
    this.#farewells.add(farewell);
    void farewell.finally(() => this.#farewells.delete(farewell));
  }
}

async function closeConnection(open: OpenConnection): Promise<void> {
  clearTimeout(open.idle);
  const connection = await open.connection.catch(() => undefined);
  await connection?.close();
}

/** The promise's value, or the signal's reason as soon as it fires. */
async function raceAbort<T>(promise: Promise<T>, abortSignal: AbortSignal): Promise<T> {
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(abortSignal.reason);
  });
  abortSignal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    abortSignal.removeEventListener('abort', onAbort);
  }
}

function sentence(clause: string): string {
  return clause.endsWith('.') ? clause : `${clause}.`;
}
