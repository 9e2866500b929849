import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type HistoryMessage, type ModelRequestBody, objection, textOf } from '../../test/support/model-rules.js';
import { now, sleep } from './clock.js';
import { markersOf, plannedStep, type ToolName } from './plan.js';

/** One request that reached the model. */
export interface ModelRequest {
  /** Its text consists of the words `r<id>.0 r<id>.1 …`, so that each can be told from every other. */
  readonly id: number;
  readonly at: number;
  endedAt: number | null;
  /** `aborted`: the client closed the connection before the answer was through. */
  ending: 'open' | 'answered' | 'aborted';
  /** The markers of all user messages of its context, in order. */
  readonly markers: readonly string[];
  /** The same for two requests with the same context. */
  readonly digest: string;
  /** The words that were sent, each with when. */
  readonly words: { readonly at: number; readonly text: string }[];
  /** The calls that it asked for, by what their arguments say. */
  readonly calls: { readonly tool: ToolName; readonly call: string }[];
}

const FIRST_WORD_MS = 60;

/**
 * The scripted model of a run: OpenAI-compatible, streamed, strict about what it is sent. What it says is written in
 * the newest user message (see `plan.ts`); everything that it was asked is recorded.
 */
export class Model {
  requests: ModelRequest[] = [];
  /** What was wrong with requests. */
  complaints: string[] = [];
  #server: Server | undefined;
  #count = 0;

  async start(): Promise<this> {
    const server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
    // Closing an idle connection just as a request comes over it would make the product repeat that request.
    server.keepAliveTimeout = 600_000;
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    this.#server = server;
    return this;
  }

  async stop(): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise((resolve) => this.#server?.close(resolve));
  }

  /** Its address, with a slash at the end. */
  get url(): string {
    const address = this.#server?.address() as AddressInfo;
    return `http://127.0.0.1:${address.port}/`;
  }

  /** Begins a new log. */
  clear(): void {
    this.requests = [];
    this.complaints = [];
  }

  async #answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const at = now();
    const parts: Buffer[] = [];
    for await (const part of incoming) parts.push(part as Buffer);
    const body = JSON.parse(Buffer.concat(parts).toString('utf8')) as ModelRequestBody;
    const request = this.#record(body, at);
    response.on('close', () => {
      request.endedAt = now();
      request.ending = response.writableFinished ? 'answered' : 'aborted';
    });
    const wrong = objection(body);
    if (wrong === undefined) return stream(response, request, body.messages ?? []);
    this.complaints.push(`${wrong} (request ${request.id}, messages ${request.markers.slice(-3).join(', ')})`);
    response.writeHead(400, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message: wrong, type: 'invalid_request_error' } }));
  }

  #record(body: ModelRequestBody, at: number): ModelRequest {
    const users = (body.messages ?? []).filter(({ role }) => role === 'user');
    this.#count += 1;
    const request: ModelRequest = {
      id: this.#count,
      at,
      endedAt: null,
      ending: 'open',
      markers: users.flatMap(({ content }) => markersOf(textOf(content))),
      digest: createHash('sha256').update(JSON.stringify(body.messages)).digest('base64'),
      words: [],
      calls: [],
    };
    this.requests.push(request);
    return request;
  }
}

async function stream(
  response: ServerResponse,
  request: ModelRequest,
  messages: readonly HistoryMessage[],
): Promise<void> {
  const lastUser = messages.findLastIndex(({ role }) => role === 'user');
  const step = messages.slice(lastUser).filter(({ role, tool_calls }) => role === 'assistant' && tool_calls).length;
  const { words, everyMs, tools } = plannedStep(textOf(messages[lastUser]?.content), step);
  response.socket?.setNoDelay(true);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const say = (delta: object) => response.write(frame({ choices: [{ index: 0, delta, finish_reason: null }] }));
  await sleep(FIRST_WORD_MS);
  for (let index = 0; index < words && !response.destroyed; index += 1) {
    const text = `r${request.id}.${index} `;
    say({ content: text });
    request.words.push({ at: now(), text });
    await sleep(everyMs);
  }
  if (response.destroyed) return;
  for (const [index, tool] of tools.entries()) {
    const call = `c${request.id}.${index}`;
    request.calls.push({ tool, call });
    const args = JSON.stringify({ call, ms: (request.id * 37) % 150 });
    const id = `call_${randomUUID().replaceAll('-', '').slice(0, 24)}`;
    say({ tool_calls: [{ index, id, type: 'function', function: { name: tool, arguments: args } }] });
  }
  const finish_reason = tools.length > 0 ? 'tool_calls' : 'stop';
  response.write(frame({ choices: [{ index: 0, delta: {}, finish_reason }] }));
  response.write(
    frame({ choices: [], usage: { prompt_tokens: 3, completion_tokens: words, total_tokens: 3 + words } }),
  );
  response.end('data: [DONE]\n\n');
}

function frame(fields: object): string {
  return `data: ${JSON.stringify({ id: 'chaos', object: 'chat.completion.chunk', created: 1, model: 'scripted', ...fields })}\n\n`;
}
