import { Agent, type IncomingHttpHeaders, type IncomingMessage, request as nodeRequest } from 'node:http';
import { PATIENCE_MS, within } from './deadline.js';
import { SseStream } from './sse-stream.js';

/** What a request may add to a client's own headers. `body` is sent as JSON, a string or a Buffer as it is. */
export interface RequestOptions {
  readonly method?: string;
  readonly body?: unknown;
  /** Header values; `undefined` takes a header of the client away. */
  readonly headers?: Record<string, string | undefined>;
}

/** A response read to its end. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly text: string;
  /** The parsed JSON body, as the test says it looks; throws where the body is no JSON. */
  json<T = Record<string, unknown>>(): T;
}

/** An answer with another status than the test counted on; carries the response. */
export class UnexpectedStatus extends Error {
  constructor(
    what: string,
    readonly response: HttpResponse,
  ) {
    super(`${what} answered ${response.status}: ${response.text.slice(0, 500)}`);
  }
}

/**
 * HTTP as one user against one main. Every request has its own connection, so that nothing is shared between
 * tests and a main that stops has no idle ones.
 */
export class HttpClient {
  constructor(
    readonly baseUrl: string,
    readonly headers: Record<string, string> = {},
  ) {}

  /** The same main with these headers instead of the client's own. */
  withHeaders(headers: Record<string, string>): HttpClient {
    return new HttpClient(this.baseUrl, headers);
  }

  /** The same headers on another main. */
  at(baseUrl: string): HttpClient {
    return new HttpClient(baseUrl, this.headers);
  }

  /** Any request; answers with whatever came back. */
  async request(path: string, options: RequestOptions = {}): Promise<HttpResponse> {
    const what = `${options.method ?? 'GET'} ${path}`;
    const message = await this.#open(path, options);
    return within(readAll(message), () => `${what} answered ${message.statusCode} and its body never ended`);
  }

  /** Like `request`, but with any status other than `status` an `UnexpectedStatus` is thrown. */
  async expect(status: number, path: string, options: RequestOptions = {}): Promise<HttpResponse> {
    const response = await this.request(path, options);
    if (response.status !== status) throw new UnexpectedStatus(`${options.method ?? 'GET'} ${path}`, response);
    return response;
  }

  get(path: string, options: RequestOptions = {}): Promise<HttpResponse> {
    return this.request(path, options);
  }

  post(path: string, body?: unknown, options: RequestOptions = {}): Promise<HttpResponse> {
    return this.request(path, { ...options, method: 'POST', body });
  }

  put(path: string, body?: unknown, options: RequestOptions = {}): Promise<HttpResponse> {
    return this.request(path, { ...options, method: 'PUT', body });
  }

  delete(path: string, options: RequestOptions = {}): Promise<HttpResponse> {
    return this.request(path, { ...options, method: 'DELETE' });
  }

  /** Opens a stream of events; anything but 200 with `text/event-stream` is thrown as `UnexpectedStatus`. */
  async openSse(path: string, options: RequestOptions = {}): Promise<SseStream> {
    const what = `${options.method ?? 'GET'} ${path}`;
    const headers = { accept: 'text/event-stream', ...options.headers };
    const message = await this.#open(path, { ...options, headers });
    const isStream = message.headers['content-type']?.startsWith('text/event-stream') === true;
    if (message.statusCode === 200 && isStream) return new SseStream(what, message);
    throw new UnexpectedStatus(what, await within(readAll(message), () => `${what}: an answer without an end`));
  }

  #open(path: string, options: RequestOptions): Promise<IncomingMessage> {
    const method = options.method ?? 'GET';
    const body = encode(options.body);
    const headers = mergeHeaders(this.headers, body, options.headers);
    const opened = new Promise<IncomingMessage>((resolve, reject) => {
      const agent = new Agent({ keepAlive: false });
      const outgoing = nodeRequest(new URL(this.baseUrl + path), { method, headers, agent }, resolve);
      outgoing.on('error', reject);
      outgoing.end(body);
    });
    return within(opened, () => `${method} ${path}: no answer from ${this.baseUrl}`, PATIENCE_MS);
  }
}

function encode(body: unknown): Buffer | undefined {
  if (body === undefined) return undefined;
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

function mergeHeaders(
  own: Record<string, string>,
  body: Buffer | undefined,
  more: Record<string, string | undefined> = {},
): Record<string, string> {
  const merged: Record<string, string | undefined> = { ...own };
  if (body !== undefined) {
    merged['content-type'] = 'application/json';
    merged['content-length'] = String(body.length);
  }
  for (const [name, value] of Object.entries(more)) merged[name.toLowerCase()] = value;
  return Object.fromEntries(
    Object.entries(merged).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

async function readAll(message: IncomingMessage): Promise<HttpResponse> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  const text = bytes.toString('utf8');
  return {
    status: message.statusCode ?? 0,
    headers: message.headers,
    bytes,
    text,
    json: <T>() => JSON.parse(text) as T,
  };
}
