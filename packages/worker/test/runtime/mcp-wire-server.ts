import type { ServerResponse } from 'node:http';
import type { McpTool } from '@turnkeep/shared/contract/agent';
import type { Egress } from '../../src/runtime/egress.js';
import { McpClients, type McpClientsOptions, type McpToolOffer } from '../../src/runtime/mcp.js';
import { useWireServer, type WireRequest } from './wire-server.js';

// biome-ignore lint/suspicious/noExplicitAny: JSON-RPC as it comes, read by tests alone
export type Message = any;
type Handler = (message: Message, response: ServerResponse, request: WireRequest) => void | Promise<void>;

/** An MCP server of protocol version 2025-11-25 with sessions, of which a test replaces the methods that it is about. */
export class McpWireServer {
  readonly seen: { message: Message; request: WireRequest }[] = [];
  readonly ended: string[] = [];
  handlers: Record<string, Handler> = {};
  #sessions = 0;

  /** Takes a request that came to the wire. */
  async answer(request: WireRequest, response: ServerResponse): Promise<void> {
    if (request.method === 'DELETE') {
      this.ended.push(String(request.headers['mcp-session-id']));
      return void response.writeHead(200).end();
    }
    const message: Message = JSON.parse(request.body);
    this.seen.push({ message, request });
    await (this.handlers[message.method] ?? this.#usual(message.method))(message, response, request);
  }

  /** The messages of one method. */
  of(method: string): { message: Message; request: WireRequest }[] {
    return this.seen.filter(({ message }) => message.method === method);
  }

  reset(): void {
    this.seen.length = 0;
    this.ended.length = 0;
    this.handlers = {};
  }

  /** The server lists these tools, on one page. */
  lists(...tools: object[]): void {
    this.handlers['tools/list'] = (message, response) => result(response, message, { tools });
  }

  /** Answers as if no test had replaced anything. */
  async answerUsually(message: Message, response: ServerResponse): Promise<void> {
    await this.#usual(message.method)(message, response, this.seen.at(-1)!.request);
  }

  #usual(method: string): Handler {
    if (method === 'initialize') return (message, response) => this.#initialize(message, response);
    if (method?.startsWith('notifications/')) return (_, response) => void response.writeHead(202).end();
    if (method === 'tools/list') return (message, response) => result(response, message, { tools: [tool('act')] });
    if (method === 'tools/call') return (message, response) => result(response, message, text('acted'));
    return (message, response) => refuse(response, message, -32601, 'Method not found');
  }

  #initialize(message: Message, response: ServerResponse): void {
    this.#sessions += 1;
    response.setHeader('mcp-session-id', `session-${this.#sessions}`);
    const serverInfo = { name: 'wire', version: '1' };
    result(response, message, { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo });
  }
}

export const tool = (name: string, more: object = {}) => ({ name, inputSchema: { type: 'object' }, ...more });
export const text = (...texts: string[]) => ({ content: texts.map((part) => ({ type: 'text', text: part })) });

/** Answers as JSON. */
export function result(response: ServerResponse, message: Message, value: object): void {
  json(response, { jsonrpc: '2.0', id: message.id, result: value });
}

export function refuse(response: ServerResponse, message: Message, code: number, words: string, status = 200): void {
  json(response, { jsonrpc: '2.0', id: message.id, error: { code, message: words } }, status);
}

export function json(response: ServerResponse, value: object | string, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(typeof value === 'string' ? value : JSON.stringify(value));
}

/** Begins an event stream, with these messages; it stays open. */
export function stream(response: ServerResponse, ...messages: object[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
  for (const message of messages) response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
}

/** A wire server and the clients of a worker for the suite in which this is called; both are fresh for each test. */
export function useMcp(egress: Pick<Egress, 'fetch'>) {
  const wire = useWireServer();
  const server = new McpWireServer();
  const opened: McpClients[] = [];
  beforeEach(() => {
    server.reset();
    wire.requests.length = 0;
    wire.answer = (request, response) => server.answer(request, response);
  });
  afterEach(() => Promise.all(opened.splice(0).map((clients) => clients.close())));
  const clients = (options: Partial<McpClientsOptions> = {}): McpClients => {
    const made = new McpClients({ fetch: (input, init) => egress.fetch(input, init), ...options });
    opened.push(made);
    return made;
  };
  const entry = (more: Partial<McpTool> = {}): McpTool => {
    return { type: 'mcp', name: 'wire', url: `${wire.url}/mcp`, requireApproval: [], ...more };
  };
  const offer = (serverToolName = 'act'): McpToolOffer => {
    const inputSchema = { type: 'object' };
    return { name: 'x', server: entry(), serverToolName, description: '', inputSchema, requireApproval: false };
  };
  return { wire, server, clients, entry, offer };
}

export const never = (): AbortSignal => new AbortController().signal;
