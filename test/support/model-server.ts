import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { deferred, eventually, within } from './deadline.js';
import { type Gate, gate } from './gate.js';
import { lastUserText, type ModelRequestBody, objection } from './model-rules.js';
import { type Reply, say } from './model-script.js';
import { writeReply } from './model-writer.js';

/** One request that reached the model server. */
export interface RecordedRequest {
  readonly headers: IncomingHttpHeaders;
  readonly body: ModelRequestBody;
  /** `performance.now()` of its arrival. */
  readonly at: number;
  /** The marker of the script that answers it, or `undefined`. */
  readonly marker: string | undefined;
  /** Resolves when the exchange is over: `answered` in full, or `aborted` by the client before that. */
  readonly over: Promise<'answered' | 'aborted'>;
  /** The same, to look at: `open` while it is under way. */
  readonly state: () => 'open' | 'answered' | 'aborted';
}

interface Script {
  readonly marker: string;
  readonly replies: readonly Reply[];
  used: number;
}

/**
 * A scripted, OpenAI-compatible model on a port of its own (`POST /v1/chat/completions`, streamed or not). Scripts are
 * keyed by a marker in the last user message, so that tests which run beside each other do not meet. A request that a
 * real provider would refuse gets a 400 and is kept in `complaints`.
 */
export class ModelServer {
  readonly requests: RecordedRequest[] = [];
  /** What was wrong with requests; a test suite asserts that this is empty after each test. */
  readonly complaints: string[] = [];
  #scripts: Script[] = [];
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

  /** What an agent's configuration names as `baseUrl`. */
  get baseUrl(): string {
    const address = this.#server?.address() as AddressInfo;
    return `http://127.0.0.1:${address.port}/v1`;
  }

  /** Requests that are being answered at this moment. */
  get open(): number {
    return this.requests.filter((request) => request.state() === 'open').length;
  }

  /**
   * Answers requests whose last user message contains `marker`: the first with the first reply, the next one (after
   * tool results, or a retry) with the second, and so on. A request beyond them is a complaint. Without a script for
   * its message, a request is answered `You said: …`.
   */
  on(marker: string, ...replies: Reply[]): void {
    this.#scripts = this.#scripts.filter((script) => script.marker !== marker);
    this.#scripts.push({ marker, replies, used: 0 });
  }

  /** Answers `marker` with `before`, then stands at the gate that is returned, then says `after`. */
  hold(marker: string, before = 'Let me see', after = ', done'): Gate {
    const held = gate();
    this.on(marker, say(before, held, after));
    return held;
  }

  /** The requests whose last user message contains `marker`, oldest first. */
  requestsFor(marker: string): RecordedRequest[] {
    return this.requests.filter((request) => lastUserText(request.body).includes(marker));
  }

  /** Waits for the `count`-th request whose last user message contains `marker`. */
  async request(marker: string, count = 1): Promise<RecordedRequest> {
    const search = async () => {
      for (;;) {
        const found = this.requestsFor(marker)[count - 1];
        if (found !== undefined) return found;
        await this.#arrival.promise;
      }
    };
    return within(search(), () => `request ${count} for '${marker}' never came; ${this.requests.length} others did`);
  }

  /** Waits until no request is open: what was aborted is let go. */
  async idle(): Promise<void> {
    await eventually(`${this.open} requests stay open at the model`, async () => this.open === 0);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.socket.setNoDelay(true);
    const body = await readJson(request);
    if (request.method !== 'POST' || request.url !== '/v1/chat/completions' || body === undefined) {
      return this.#refuse(response, 404, `no such route or no JSON: ${request.method} ${request.url}`);
    }
    const script = this.#scripts.find((one) => lastUserText(body).includes(one.marker));
    const recorded = record(request, response, body, script?.marker);
    this.requests.push(recorded);
    this.#announce();
    const wrong = objection(body);
    if (wrong !== undefined) return this.#refuse(response, 400, wrong);
    const reply = script === undefined ? say(`You said: ${lastUserText(body)}`) : script.replies[script.used++];
    if (reply === undefined) return this.#refuse(response, 400, `the script of '${script?.marker}' is at its end`);
    await writeReply(response, body, reply, recorded.over);
  }

  #refuse(response: ServerResponse, status: number, message: string): void {
    this.complaints.push(message);
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message, type: 'invalid_request_error', param: null, code: null } }));
  }

  #announce(): void {
    const arrival = this.#arrival;
    this.#arrival = deferred();
    arrival.resolve();
  }
}

function record(
  request: IncomingMessage,
  response: ServerResponse,
  body: ModelRequestBody,
  marker: string | undefined,
): RecordedRequest {
  const over = deferred<'answered' | 'aborted'>();
  let state: 'open' | 'answered' | 'aborted' = 'open';
  response.on('close', () => {
    state = response.writableFinished ? 'answered' : 'aborted';
    over.resolve(state);
  });
  return { headers: request.headers, body, at: performance.now(), marker, over: over.promise, state: () => state };
}

async function readJson(request: IncomingMessage): Promise<ModelRequestBody | undefined> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer);
    return JSON.parse(Buffer.concat(chunks).toString('utf8')) as ModelRequestBody;
  } catch {
    return undefined;
  }
}
