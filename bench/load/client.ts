import { Agent, type IncomingMessage, request } from 'node:http';
import { nowMs } from '../clock.js';

/** When what happened, by `nowMs`. */
export interface TurnTimes {
  sentAt: number;
  queuedAt: number;
  startedAt: number;
  doneAt: number;
  /** For each chunk of the model, how long it took from the model to here, in ms. */
  delays: number[];
  /** Chunks that came in a snapshot, after a gap, and so without a delay of their own. */
  inSnapshots: number;
}

/** Puts load on a main, the product's or the bare one: both answer the same route. Connections are kept. */
export class LoadClient {
  readonly #url: string;
  readonly #token: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1_000 });

  /** @param path the route for sending */
  constructor(port: number, path: string, token: string) {
    this.#url = `http://127.0.0.1:${port}${path}`;
    this.#token = token;
  }

  /** Sends a message and waits for 202; answers how long that took, in ms. */
  async accept(message: string): Promise<number> {
    const sentAt = nowMs();
    const response = await this.#post({ message }, 'application/json', 202);
    for await (const _ of response);
    return nowMs() - sentAt;
  }

  /** Sends a message, waits for `message-queued` and leaves; answers how long it took, in ms. */
  async queued(message: string): Promise<number> {
    const sentAt = nowMs();
    const response = await this.#post({ message }, 'text/event-stream', 200);
    let at = Number.NaN;
    for await (const line of events(response)) {
      at = nowMs();
      expectType(line, 'message-queued');
      break;
    }
    return at - sentAt;
  }

  /** Sends a message and follows its turn to `done`. Throws where it ends otherwise than well. */
  async turn(message: string, sessionId?: string): Promise<TurnTimes> {
    const times: TurnTimes = { sentAt: nowMs(), queuedAt: 0, startedAt: 0, doneAt: 0, delays: [], inSnapshots: 0 };
    const body = sessionId ? { message, sessionId } : { message };
    const stamps = new Stamps();
    for await (const line of events(await this.#post(body, 'text/event-stream', 200))) {
      const at = nowMs();
      if (isType(line, 'text-delta')) times.delays.push(...stamps.delaysOf(line, at));
      else if (isType(line, 'snapshot')) times.inSnapshots += stamps.inSnapshot(line) - times.delays.length;
      else if (isType(line, 'message-queued')) times.queuedAt = at;
      else if (isType(line, 'execution-started')) times.startedAt = at;
      else if (isType(line, 'done')) {
        if (!line.includes('"success"')) throw new Error(`a turn of the bench ended with ${line}`);
        times.doneAt = at;
      }
    }
    if (times.doneAt === 0) throw new Error('a stream of the bench ended without done');
    return times;
  }

  /** Closes all connections. */
  stop(): void {
    this.#agent.destroy();
  }

  async #post(body: object, accept: string, status: number): Promise<IncomingMessage> {
    const text = JSON.stringify(body);
    const headers = {
      accept,
      authorization: `Bearer ${this.#token}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
    };
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const outgoing = request(this.#url, { method: 'POST', agent: this.#agent, headers }, resolve);
      outgoing.setNoDelay(true);
      outgoing.on('error', reject);
      outgoing.end(text);
    });
    response.setEncoding('utf8');
    if (response.statusCode === status) return response;
    let problem = '';
    for await (const part of response) problem += part as string;
    throw new Error(`a request of the bench got ${response.statusCode}: ${problem.slice(0, 500)}`);
  }
}

/** The data of each event, as it comes. Leaving the loop closes the connection. */
async function* events(response: IncomingMessage): AsyncGenerator<string> {
  let rest = '';
  for await (const part of response) {
    const frames = (rest + (part as string)).split('\n\n');
    rest = frames.pop() ?? '';
    for (const frame of frames) {
      const start = frame.startsWith('data: ') ? 6 : frame.indexOf('\ndata: ') + 7;
      if (start > 6 || frame.startsWith('data: ')) yield frame.slice(start);
    }
  }
}

function isType(line: string, type: string): boolean {
  return line.startsWith(`{"type":"${type}"`);
}

function expectType(line: string, type: string): void {
  if (!isType(line, type)) throw new Error(`expected ${type}, got ${line.slice(0, 200)}`);
}

/** The times, in µs, at which the model sent its chunks are what its text consists of. */
class Stamps {
  /** The beginning of a stamp that a delta has cut in two. */
  #rest = '';

  /** Chunks may have been joined into one delta, and a long delta cut into several. */
  delaysOf(line: string, at: number): number[] {
    const { delta } = JSON.parse(line) as { delta: string };
    const stamps = (this.#rest + delta).split(' ');
    this.#rest = stamps.pop() ?? '';
    return stamps.map((stamp) => at - Number(stamp) / 1000);
  }

  /** How many stamps the whole text of a snapshot holds. */
  inSnapshot(line: string): number {
    const { messages } = JSON.parse(line) as { messages: { content: { type: string; text?: string }[] }[] };
    const text = messages.flatMap(({ content }) => content.map((part) => part.text ?? '')).join('');
    return text.match(/\d{6,} /g)?.length ?? 0;
  }
}
