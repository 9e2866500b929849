import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { deferred, within } from './deadline.js';
import type { Gate } from './gate.js';

/** One call of a tool's endpoint. */
export interface RecordedCall {
  readonly tool: string;
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** The JSON body (POST), or `undefined`. */
  readonly body: unknown;
  readonly query: URLSearchParams;
  /** Resolves when the exchange is over: `answered` in full, or `aborted` by the client before that. */
  readonly over: Promise<'answered' | 'aborted'>;
}

/** What an endpoint does: a JSON value to answer with, or a function that answers as it likes. */
export type ToolBehaviour = (call: RecordedCall, response: ServerResponse) => void | Promise<void>;

/** HTTP tools on a port of their own: `POST` or `GET /<tool>`. Records calls; what was not scripted answers 404. */
export class ToolServer {
  readonly calls: RecordedCall[] = [];
  readonly #tools = new Map<string, ToolBehaviour>();
  #server: Server | undefined;
  #arrival = deferred();

  async start(): Promise<this> {
    const server = createServer((request, response) => void this.#answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    this.#server = server;
    return this;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  }

  /** The address of a tool, for an agent's configuration. */
  url(tool: string): string {
    const address = this.#server?.address() as AddressInfo;
    return `http://127.0.0.1:${address.port}/${tool}`;
  }

  /** Scripts a tool: see `answer`, `answerAfter`, `silence`, `big` and `hangUp`. */
  on(tool: string, behaviour: ToolBehaviour): void {
    this.#tools.set(tool, behaviour);
  }

  callsOf(tool: string): RecordedCall[] {
    return this.calls.filter((call) => call.tool === tool);
  }

  /** Waits for the `count`-th call of a tool. */
  async call(tool: string, count = 1): Promise<RecordedCall> {
    const search = async () => {
      for (;;) {
        const found = this.callsOf(tool)[count - 1];
        if (found !== undefined) return found;
        await this.#arrival.promise;
      }
    };
    return within(search(), () => `call ${count} of ${tool} never came; calls: ${this.calls.map((one) => one.tool)}`);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = await record(request, response);
    this.calls.push(call);
    const arrival = this.#arrival;
    this.#arrival = deferred();
    arrival.resolve();
    const behaviour = this.#tools.get(call.tool) ?? answer({ error: 'no such tool' }, 404);
    await behaviour(call, response);
  }
}

/** Answers with this JSON value and status. */
export function answer(value: unknown, status = 200, headers: Record<string, string> = {}): ToolBehaviour {
  return (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(value));
  };
}

/** Answers like `answer`, once the gate is opened. */
export function answerAfter(gate: Gate, value: unknown): ToolBehaviour {
  return async (call, response) => {
    await gate.pass(call.over);
    if (!response.destroyed) await answer(value)(call, response);
  };
}

/** Never answers. */
export function silence(): ToolBehaviour {
  return async (call) => void (await call.over);
}

/** Answers with a text of so many bytes. */
export function big(bytes: number): ToolBehaviour {
  return (_, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' });
    response.end(Buffer.alloc(bytes, 'x'));
  };
}

/** Closes the connection without an answer. */
export function hangUp(): ToolBehaviour {
  return (_, response) => void response.destroy();
}

async function record(request: IncomingMessage, response: ServerResponse): Promise<RecordedCall> {
  const over = deferred<'answered' | 'aborted'>();
  response.on('close', () => over.resolve(response.writableFinished ? 'answered' : 'aborted'));
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString('utf8');
  const url = new URL(request.url ?? '/', 'http://tools');
  return {
    tool: url.pathname.slice(1),
    method: request.method ?? '',
    headers: request.headers,
    body: text === '' ? undefined : JSON.parse(text),
    query: url.searchParams,
    over: over.promise,
  };
}
