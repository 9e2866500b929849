import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { now, sleep } from './clock.js';

/** One call that reached the tool server. */
export interface ToolCallRecord {
  readonly tool: string;
  readonly toolCallId: string;
  readonly executionId: string;
  /** What the model wrote into the arguments: no other call of the run has it. */
  readonly call: string;
  readonly at: number;
}

/** The HTTP tools of a run: they take the time that their arguments say, and record every call. */
export class Tools {
  calls: ToolCallRecord[] = [];
  #server: Server | undefined;

  async start(): Promise<this> {
    const server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
    server.keepAliveTimeout = 600_000;
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    this.#server = server;
    return this;
  }

  async stop(): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise((resolve) => this.#server?.close(resolve));
  }

  /** The address of all tools, with a slash at the end; a tool's name comes behind it. */
  get url(): string {
    const address = this.#server?.address() as AddressInfo;
    return `http://127.0.0.1:${address.port}/`;
  }

  /** Begins a new log. */
  clear(): void {
    this.calls = [];
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const at = now();
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const { call, ms } = JSON.parse(Buffer.concat(parts).toString('utf8')) as { call: string; ms: number };
    const { headers } = request;
    const toolCallId = String(headers['x-turnkeep-tool-call-id']);
    const executionId = String(headers['x-turnkeep-execution-id']);
    this.calls.push({ tool: (request.url ?? '').slice(1), toolCallId, executionId, call, at });
    await sleep(ms);
    if (response.destroyed) return;
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ answerTo: call }));
  }
}
