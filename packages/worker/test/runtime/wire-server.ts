import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface WireRequest {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
  /** Resolves when the exchange is over, `true` where the answer was complete. */
  over: Promise<boolean>;
}

type Answer = (request: WireRequest, response: ServerResponse) => void | Promise<void>;

/** A server on loopback that answers as its test says, byte by byte, and keeps what it was asked. */
export class WireServer {
  readonly requests: WireRequest[] = [];
  answer: Answer = (_, response) => void response.end('ok');
  readonly #server = createServer((request, response) => void this.#handle(request, response));

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get last(): WireRequest {
    return this.requests.at(-1)!;
  }

  /** The JSON body of the last request. */
  // biome-ignore lint/suspicious/noExplicitAny: three providers' formats, read by tests alone
  get lastJson(): any {
    return JSON.parse(this.last.body);
  }

  /** Answers with these server-sent events; `[name, data]` names an event. */
  streams(...events: (object | string | [string, object])[]): void {
    this.answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const event of events) response.write(frame(event));
      response.end();
    };
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const over = new Promise<boolean>((resolve) => response.on('close', () => resolve(response.writableFinished)));
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method = '', url = '', headers } = request;
    const recorded = { method, url, headers, body: Buffer.concat(chunks).toString('utf8'), over };
    this.requests.push(recorded);
    await this.answer(recorded, response);
  }
}

/** A server for the suite in which this is called. */
export function useWireServer(): WireServer {
  const server = new WireServer();
  before(() => server.start());
  after(() => server.stop());
  return server;
}

/** A port of loopback on which nobody listens. */
export async function freePort(): Promise<number> {
  const server = await new WireServer().start();
  const { port } = server;
  await server.stop();
  return port;
}

function frame(event: object | string | [string, object]): string {
  if (typeof event === 'string') return event;
  if (Array.isArray(event)) return `event: ${event[0]}\ndata: ${JSON.stringify(event[1])}\n\n`;
  return `data: ${JSON.stringify(event)}\n\n`;
}
