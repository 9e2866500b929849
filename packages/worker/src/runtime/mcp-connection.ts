import { AsyncLocalStorage } from 'node:async_hooks';
import { type CallToolResult, createMCPClient, type ListToolsResult, type MCPClient } from '@ai-sdk/mcp';
import type { JsonObject } from './json.js';
import { isRefusal } from './mcp-failure.js';
import { type Exchange, SessionLost, wireFetch } from './mcp-wire.js';

export interface McpConnectionOptions {
  url: string;
  fetch: typeof globalThis.fetch;
  maxAnswerBytes: number;
  /** `true`: the server is known to speak a version before 2026, which spares the question which versions it speaks. */
  isLegacy: boolean;
  onFarewell: (sent: Promise<void>) => void;
  /** Bounds the opening alone. */
  signal: AbortSignal;
}

/**
 * One client of one MCP server over streamable HTTP; where the protocol version has sessions, one session.
 *
 * Why @ai-sdk/mcp and not @modelcontextprotocol/sdk or /client: it hands each request's signal down to fetch, so a Stop closes that
 * request's connection and no other; it repeats no call unless told to, nor does it resume a broken stream behind our back; it
 * validates no output against the server's schema after the tool has already acted; it speaks the versions with and without
 * sessions; and the runtime needs no further packages for it. The official client alone notices a cut stream and sends
 * `notifications/cancelled`: both are in `mcp-wire.ts`.
 */
export class McpConnection {
  readonly #client: MCPClient;
  readonly #exchanges: AsyncLocalStorage<Exchange>;
  #isSound = true;

  private constructor(client: MCPClient, exchanges: AsyncLocalStorage<Exchange>) {
    this.#client = client;
    this.#exchanges = exchanges;
  }

  /** Opens a connection. Errors: what the network or the server says; see `mcp-failure.ts`. */
  static async open(options: McpConnectionOptions): Promise<McpConnection> {
    const exchanges = new AsyncLocalStorage<Exchange>();
    const client = await createMCPClient({
      transport: { type: 'http', url: options.url, fetch: wireFetch({ ...options, exchanges }) },
      clientName: 'turnkeep',
      version: '1',
      maxRetries: 0,
      protocolVersionDiscovery: !options.isLegacy,
      initializationOptions: { signal: options.signal },
      // What concerns a request is told to that request; the rest is a server's chatter.
      onUncaughtError: () => {},
    });
    return new McpConnection(client, exchanges);
  }

  /** The protocol version that both sides speak, a date. */
  get protocolVersion(): string {
    return this.#client.initializeResult.protocolVersion;
  }

  /** `false` once the server has refused a request as such or a connection broke: use another from now on. */
  get isSound(): boolean {
    return this.#isSound;
  }

  /** One page of the server's tools. */
  async listPage(cursor: string | undefined, signal: AbortSignal): Promise<ListToolsResult> {
    if (this.#client.initializeResult.capabilities.tools === undefined) return { tools: [] };
    const params = cursor === undefined ? {} : { params: { cursor } };
    return this.#exchange({}, signal, () => this.#client.listTools({ ...params, options: { signal } }));
  }

  /** Calls a tool once, with these headers on the call's own HTTP request. */
  callTool(
    tool: { name: string; inputSchema: Record<string, unknown> },
    input: JsonObject,
    headers: Record<string, string>,
    signal: AbortSignal,
  ): Promise<CallToolResult> {
    // The version of 2026 lets a schema ask for arguments as HTTP headers; a client knows of it from the definition.
    this.#client.toolsFromDefinitions({ tools: [tool] });
    return this.#exchange(headers, signal, () =>
      this.#client.callTool({ name: tool.name, arguments: input, options: { signal } }),
    );
  }

  /** Ends the session. Requests under way fail. Never rejects. */
  async close(): Promise<void> {
    await this.#client.close().catch(() => {});
  }

  async #exchange<T>(headers: Record<string, string>, signal: AbortSignal, send: () => Promise<T>): Promise<T> {
    let onAnswerEnd: Exchange['onAnswerEnd'] = () => {};
    const ended = new Promise<never>((_, reject) => {
      onAnswerEnd = reject;
    });
    const exchange: Exchange = { headers, onAnswerEnd };
    const onAbort = () => exchange.giveUp?.();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      return await Promise.race([this.#exchanges.run(exchange, send), ended]);
    } catch (error) {
      const { hasSession, status } = exchange;
      if (!isRefusal(error) || status === undefined || status >= 400) this.#isSound = false;
      // 404 by the specification, 400 by the official SDK's examples; often with a JSON-RPC error that looks like a tool's.
      if (hasSession && (status === 404 || status === 400)) throw new SessionLost(status, { cause: error });
      throw error;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }
}
