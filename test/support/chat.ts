import type { TestUser } from './cluster.js';
import { eventually } from './deadline.js';
import type { HttpClient, HttpResponse, RequestOptions } from './http.js';
import type { SseStream } from './sse-stream.js';
import { readTurn, type Turn } from './turn.js';

/** Of a message, where and how it is sent. */
export interface SendOptions {
  readonly sessionId?: string;
  readonly attachments?: readonly Record<string, unknown>[];
  /** Number of the main that gets the request. */
  readonly main?: number;
  readonly headers?: Record<string, string>;
}

/** What an acceptance answers (contract, section 4). */
export interface Accepted {
  readonly queueId: string;
  readonly sessionId: string;
  readonly messageId: string;
}

/** One part of a message of the transcript. */
export interface TranscriptPart {
  readonly type: string;
  readonly text?: string;
  readonly toolCallId?: string;
  readonly toolName?: string;
  readonly input?: unknown;
  readonly state?: string;
  readonly output?: unknown;
  readonly error?: unknown;
  readonly truncated?: boolean;
  readonly [field: string]: unknown;
}

/** One message of the transcript (contract, section 5). */
export interface TranscriptMessage {
  readonly id: string;
  readonly role: string;
  readonly executionId: string;
  readonly createdAt: string;
  readonly status?: string;
  readonly content: readonly TranscriptPart[];
}

/** `GET …/messages`. */
export interface Transcript {
  readonly messages: readonly TranscriptMessage[];
  readonly openSuspensions: readonly unknown[];
  readonly activeExecutionId: string | null;
}

/** One element of `GET …/executions`. */
export interface ExecutionRow {
  readonly id: string;
  readonly runId: string;
  readonly status: string;
  readonly createdAt: string;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  readonly usage: { readonly inputTokens: number; readonly outputTokens: number } | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** One element of `GET …/queue`. */
export interface QueueItem {
  readonly id: string;
  readonly messageId: string;
  readonly message: string;
  readonly attachments: readonly Record<string, unknown>[];
  readonly createdAt: string;
  readonly steeringExecutionId: string | null;
}

/** `GET …/queue`. */
export interface Queue {
  readonly items: readonly QueueItem[];
  readonly steerableExecutionId: string | null;
}

/** One user's chats with one agent: the routes of sections 4 to 6 in the words of a test. */
export class Chat {
  constructor(
    readonly user: TestUser,
    readonly projectId: string,
    readonly agentId: string,
  ) {}

  /** The same agent in the hands of another user. */
  as(user: TestUser): Chat {
    return new Chat(user, this.projectId, this.agentId);
  }

  path(rest = ''): string {
    return `/projects/${this.projectId}/agents/v2/${this.agentId}/chat${rest}`;
  }

  http(main = 0): HttpClient {
    return this.user.on(main);
  }

  /** Posts a message and answers with whatever came, read to its end: for refusals. */
  post(body: unknown, options: RequestOptions & { main?: number } = {}): Promise<HttpResponse> {
    return this.http(options.main).post(this.path(), body, options);
  }

  /** Sends a message and opens its stream. */
  send(message: string, options: SendOptions = {}): Promise<SseStream> {
    const request = { method: 'POST', body: bodyOf(message, options), headers: { ...options.headers } };
    return this.http(options.main).openSse(this.path(), request);
  }

  /** Sends a message without a stream, expecting 202. */
  async accept(message: string, options: SendOptions = {}): Promise<Accepted> {
    const headers = { accept: 'application/json', ...options.headers };
    const request = { method: 'POST', body: bodyOf(message, options), headers };
    return (await this.http(options.main).expect(202, this.path(), request)).json<Accepted>();
  }

  /** Sends a message and reads its turn to the end; every rule of an ordinary turn's stream is checked on the way. */
  async turn(message: string, options: SendOptions = {}): Promise<Turn> {
    return readTurn(await this.send(message, options));
  }

  async transcript(sessionId: string, main = 0): Promise<Transcript> {
    return (await this.http(main).expect(200, this.path(`/${sessionId}/messages`))).json<Transcript>();
  }

  async queue(sessionId: string, main = 0): Promise<Queue> {
    return (await this.http(main).expect(200, this.path(`/${sessionId}/queue`))).json<Queue>();
  }

  async executions(sessionId: string, main = 0): Promise<readonly ExecutionRow[]> {
    const response = await this.http(main).expect(200, this.path(`/${sessionId}/executions`));
    return response.json<{ executions: ExecutionRow[] }>().executions;
  }

  async stop(sessionId: string, executionId: string, main = 0): Promise<{ cancelRequested: boolean }> {
    const path = this.path(`/${sessionId}/executions/${executionId}`);
    return (await this.http(main).expect(200, path, { method: 'DELETE' })).json<{ cancelRequested: boolean }>();
  }

  /** Opens `…/executions/:executionId/events`, from the start or after a cursor. */
  follow(sessionId: string, executionId: string, from: { after?: string; main?: number } = {}): Promise<SseStream> {
    const headers = { 'last-event-id': from.after };
    return this.http(from.main).openSse(this.path(`/${sessionId}/executions/${executionId}/events`), { headers });
  }

  /** Waits until `count` executions of the session have a final status and none runs; answers with all of them. */
  settled(sessionId: string, count = 1): Promise<readonly ExecutionRow[]> {
    return eventually(`${count} executions of ${sessionId} have not settled`, async () => {
      const rows = await this.executions(sessionId);
      return rows.length >= count && rows.every((row) => row.status !== 'running') && rows;
    });
  }
}

function bodyOf(message: string, options: SendOptions): Record<string, unknown> {
  const { sessionId, attachments } = options;
  return { message, ...(sessionId && { sessionId }), ...(attachments && { attachments }) };
}
