import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually } from './deadline.js';
import { type S3Identity, signatureFault } from './s3-signature.js';

/**
 * What may go wrong with a request, after it was read. `late-500` and `late-never` do what they were asked; the one says that
 * it has not, the other says nothing.
 */
export type S3Fault = '500' | '503' | '403' | 'late-500' | 'cut' | 'cut-in-body' | 'redirect' | 'never' | 'late-never';

interface Planned {
  readonly method: string;
  readonly fault: S3Fault;
  times: number;
}

/**
 * An S3 store on loopback with one bucket, path-style: put, get and delete of whole objects. It computes the signature of
 * every request itself and refuses what is not signed as it should be. No more of S3 than that.
 */
export class S3Server {
  readonly bucket = 'attachments';
  readonly identity: S3Identity = {
    accessKeyId: `AK${randomBytes(8).toString('hex').toUpperCase()}`,
    // Characters that a client may mangle.
    secretAccessKey: `${randomBytes(12).toString('base64')}/+=`,
    region: 'eu-test-1',
  };
  readonly objects = new Map<string, { bytes: Buffer; contentType: string }>();
  /** Method and key of every request that was signed well. */
  readonly requests: string[] = [];
  /** Codes of the requests that were refused. */
  readonly refused: string[] = [];
  #faults: Planned[] = [];
  #server: Server | undefined;

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

  get endpoint(): string {
    const address = this.#server?.address() as AddressInfo;
    return `http://127.0.0.1:${address.port}`;
  }

  /** What a process is told so that it keeps its attachments here. */
  environment(prefix = 'turnkeep/test'): Record<string, string> {
    return {
      ATTACHMENTS_URL: `s3://${this.bucket}/${prefix}?endpoint=${encodeURIComponent(this.endpoint)}`,
      AWS_ACCESS_KEY_ID: this.identity.accessKeyId,
      AWS_SECRET_ACCESS_KEY: this.identity.secretAccessKey,
      AWS_REGION: this.identity.region,
    };
  }

  /** The next `times` requests with this method go wrong. */
  fail(method: string, fault: S3Fault, times = Number.POSITIVE_INFINITY): void {
    this.#faults.push({ method, fault, times });
  }

  /** Nothing goes wrong any more. */
  heal(): void {
    this.#faults = [];
  }

  /** Waits until the store holds exactly `count` objects. */
  holds(count: number): Promise<true> {
    const what = `the store does not hold ${count} objects`;
    return eventually(what, async () => this.objects.size === count && (true as const));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request);
    if (body === undefined) return;
    const wrong = signatureFault(request, body, this.identity);
    if (wrong !== undefined) {
      this.refused.push(wrong);
      return refuse(response, 403, wrong);
    }
    const [, bucket, ...rest] = decodeURIComponent(request.url?.split('?')[0] ?? '').split('/');
    const key = rest.join('/');
    this.requests.push(`${request.method} ${key}`);
    const fault = this.#nextFault(request.method ?? '');
    if (fault?.startsWith('late-')) this.#serve(request, key, body);
    if (fault !== undefined) return goWrong(response, fault);
    if (bucket !== this.bucket) return refuse(response, 404, 'NoSuchBucket');
    const { status, bytes } = this.#serve(request, key, body);
    if (status === 404) return refuse(response, 404, 'NoSuchKey');
    response.writeHead(status, status === 200 ? { 'content-length': bytes.length, etag: '"x"' } : {});
    response.end(status === 200 ? bytes : undefined);
  }

  #serve(request: IncomingMessage, key: string, body: Buffer): { status: 200 | 204 | 404; bytes: Buffer } {
    const nothing = Buffer.alloc(0);
    switch (request.method) {
      case 'PUT':
        this.objects.set(key, { bytes: body, contentType: request.headers['content-type'] ?? '' });
        return { status: 200, bytes: nothing };
      case 'GET': {
        const found = this.objects.get(key);
        return found ? { status: 200, bytes: found.bytes } : { status: 404, bytes: nothing };
      }
      case 'DELETE':
        this.objects.delete(key);
        return { status: 204, bytes: nothing };
      default:
        return { status: 404, bytes: nothing };
    }
  }

  #nextFault(method: string): S3Fault | undefined {
    const planned = this.#faults.find((one) => one.method === method && one.times > 0);
    if (planned === undefined) return undefined;
    planned.times -= 1;
    return planned.fault;
  }
}

function goWrong(response: ServerResponse, fault: S3Fault): void {
  switch (fault) {
    case '500':
    case 'late-500':
      refuse(response, 500, 'InternalError');
      break;
    case '503':
      refuse(response, 503, 'SlowDown');
      break;
    case '403':
      refuse(response, 403, 'AccessDenied');
      break;
    case 'cut':
      response.socket?.destroy();
      break;
    case 'cut-in-body':
      response.writeHead(200, { 'content-length': 1000 });
      response.write('half of it', () => response.socket?.destroy());
      break;
    case 'redirect':
      response.writeHead(307, { location: 'http://127.0.0.1:9/elsewhere' }).end();
      break;
    case 'never':
    case 'late-never':
      break;
  }
}

function refuse(response: ServerResponse, status: number, code: string): void {
  const xml = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>by the test</Message></Error>`;
  response.writeHead(status, { 'content-type': 'application/xml', 'content-length': Buffer.byteLength(xml) });
  response.end(xml);
}

async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer);
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks);
}
