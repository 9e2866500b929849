import { expect } from 'chai';
import type { Chat } from './chat.js';
import type { HttpResponse } from './http.js';
import type { EventData } from './sse-parser.js';
import type { SseStream } from './sse-stream.js';
import { checkCursors, checkExecution, checkHeaders, readTurn, summarize, type Turn } from './turn.js';

/** What answers to a call look like (contract, section 5). */
export const APPROVE = { approved: true };
export const DENY = { approved: false };

/** Where and how an answer is sent. */
export interface AnswerOptions {
  /** Number of the main that gets the request. */
  readonly main?: number;
  readonly headers?: Record<string, string>;
}

/** A call that waits, as its event tells. */
export interface WaitingCall extends EventData {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly runId: string;
  readonly input: unknown;
  readonly kind: string;
}

/** The stream of an answer, read to its end: `resume-accepted`, then the continuation or a `done` alone. */
export interface Resumed extends Turn {
  readonly accepted: EventData;
}

/** A run that waits for a person, and what a person can do with it. */
export class SuspendedRun {
  readonly sessionId: string;
  readonly runId: string;
  readonly executionId: string;
  readonly calls: readonly WaitingCall[];

  constructor(
    readonly chat: Chat,
    readonly turn: Turn,
    sessionId = turn.sessionId,
  ) {
    expect(turn.status).to.equal('suspended');
    this.sessionId = sessionId;
    this.runId = turn.runId;
    this.executionId = turn.executionId;
    this.calls = turn.of('tool-call-suspended') as WaitingCall[];
  }

  /** The id of the nth call that waits. */
  id(nth = 0): string {
    const call = this.calls[nth];
    if (call === undefined) throw new Error(`only ${this.calls.length} calls wait`);
    return call.toolCallId;
  }

  /** Sends an answer to a call and opens its stream. */
  answer(toolCallId: string, resumeData: unknown, { main, headers = {} }: AnswerOptions = {}): Promise<SseStream> {
    const request = { method: 'POST', body: { runId: this.runId, toolCallId, resumeData }, headers };
    return this.chat.http(main).openSse(this.chat.path('/resume'), request);
  }

  /** Sends an answer and reads its stream to the end; every rule of a continuation's stream is checked on the way. */
  async resume(toolCallId: string, resumeData: unknown, options: AnswerOptions = {}): Promise<Resumed> {
    return readResumed(await this.answer(toolCallId, resumeData, options));
  }

  /** Sends an answer without a stream, expecting 202. */
  async accept(toolCallId: string, resumeData: unknown, options: AnswerOptions = {}): Promise<EventData> {
    const response = await this.post({ toolCallId, resumeData }, options);
    expect(response.status, response.text).to.equal(202);
    return response.json<EventData>();
  }

  /** Sends these fields as the body of an answer, and answers with whatever came. */
  post(fields: Record<string, unknown>, { main, headers = {} }: AnswerOptions = {}): Promise<HttpResponse> {
    const body = { runId: this.runId, ...fields };
    return this.chat
      .http(main)
      .post(this.chat.path('/resume'), body, { headers: { accept: 'application/json', ...headers } });
  }

  /** The run of a continuation that suspended again. */
  again(resumed: Resumed): SuspendedRun {
    return new SuspendedRun(this.chat, resumed, this.sessionId);
  }
}

/** Sends a message whose turn has to suspend. */
export async function suspend(
  chat: Chat,
  message: string,
  options: { sessionId?: string } = {},
): Promise<SuspendedRun> {
  return new SuspendedRun(chat, await readTurn(await chat.send(message, options)));
}

/** Reads the stream of an answer to its end and checks what holds for each. */
export async function readResumed(stream: SseStream): Promise<Resumed> {
  checkHeaders(stream);
  const events = await stream.all();
  const accepted = events[0]?.data;
  if (accepted?.type !== 'resume-accepted') throw new Error(`the first event is ${JSON.stringify(accepted)}`);
  if (events.length === 2) {
    expect(events[1]?.data.type).to.equal('done');
    checkCursors(events.slice(1));
  } else checkExecution(events.slice(1), earlierCalls(events.map((event) => event.data)));
  return { ...summarize(events), accepted };
}

/** A continuation tells results of calls that another stream announced. */
function earlierCalls(events: readonly EventData[]): unknown[] {
  const announced = new Set(events.filter((event) => event.type === 'tool-call').map((event) => event.toolCallId));
  return events
    .filter((event) => event.type === 'tool-result' && !announced.has(event.toolCallId))
    .map((event) => event.toolCallId);
}
