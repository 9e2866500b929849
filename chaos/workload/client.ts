import type {
  AcceptedIds,
  Action,
  History,
  Observation,
  Operation,
  Outcome,
  StreamEvent,
  StreamRecord,
} from '../history.js';
import type { Random } from '../random.js';
import { now } from '../stage/clock.js';
import type { Slot } from '../stage/slot.js';
import { type ChatSession, sawExecution } from './chats.js';
import { type Answer, ask, openStream } from './http.js';
import { readStream } from './streams.js';

/** A session's queue, as an answer shows it. */
export interface QueueAnswer {
  readonly items: readonly { readonly id: string; readonly steeringExecutionId: string | null }[];
  readonly steerableExecutionId: string | null;
}

interface Call {
  readonly method: string;
  /** Behind the path of the agent's chat. */
  readonly path: string;
  readonly body?: object;
  readonly headers?: Record<string, string>;
}

/** The requests of one client, each through a main that its random numbers choose, each on record. */
export class Client {
  readonly #history: History;
  readonly #mains: readonly Slot[];
  readonly #open = new Set<() => void>();

  constructor(
    readonly number: number,
    history: History,
    mains: readonly Slot[],
  ) {
    this.#history = history;
    this.#mains = mains;
  }

  /** Makes a request with an answer. */
  async request(
    random: Random,
    session: ChatSession,
    action: Action,
    call: Call,
  ): Promise<Answer & { operation: Operation }> {
    const main = random.pick(this.#mains);
    const operation = this.#begin(session, action, main);
    const url = main.baseUrl;
    const answer: Answer = url
      ? await ask({ ...call, url: url + session.seat.path + call.path, token: session.seat.token })
      : { outcome: UNSENT, body: {} };
    this.#end(operation, answer.outcome);
    return { ...answer, operation };
  }

  /**
   * Makes a request that is answered with a stream, and reads on behind the caller's back.
   * @returns how it ended and, of the stream, its first event's data, once that has come
   */
  async stream(
    random: Random,
    session: ChatSession,
    action: Action | null,
    call: Call,
    of: StreamRecord['of'],
    executionId: string | null = null,
  ): Promise<Answer> {
    const main = random.pick(this.#mains);
    const leaveAfter = random.chance(0.3) ? random.between(1, 30) : Number.POSITIVE_INFINITY;
    const operation = action && this.#begin(session, action, main);
    const url = main.baseUrl;
    const after = call.headers?.['last-event-id'] ?? null;
    const record = this.#record(session, of, main, after, executionId);
    const request = { ...call, url: url + session.seat.path + call.path, token: session.seat.token };
    const opened = url ? await openStream(request) : { outcome: UNSENT, body: {} };
    if ('outcome' in opened) {
      if (operation) this.#end(operation, opened.outcome);
      return opened;
    }
    this.#history.streams.push(record);
    const first = await new Promise<StreamEvent | null>((resolve) => {
      const { ended, leave } = readStream(opened, record, leaveAfter, (event) => {
        saw(session, record, event);
        resolve(event);
      });
      this.#open.add(leave);
      void ended.then(() => {
        this.#open.delete(leave);
        resolve(null);
      });
    });
    const outcome: Outcome = first ? { kind: 'ok', status: 200 } : { kind: 'unknown', why: 'the stream broke' };
    if (operation) this.#end(operation, outcome);
    return { outcome, body: first?.data ?? {} };
  }

  /** Reads the queue; null where it did not come. */
  async readQueue(random: Random, session: ChatSession): Promise<QueueAnswer | null> {
    const call = { method: 'GET', path: `/${session.id}/queue` };
    const { outcome, body, operation } = await this.request(random, session, { kind: 'read', what: 'queue' }, call);
    if (outcome.kind !== 'ok') return null;
    return this.observe(session, body, operation, null);
  }

  /** Notes the order that an answer shows. */
  observe(
    session: ChatSession,
    body: Readonly<Record<string, unknown>>,
    { from, to }: Operation,
    by: Operation | null,
  ): QueueAnswer {
    const queue = body as unknown as QueueAnswer;
    const reserved = queue.items.filter(({ steeringExecutionId }) => steeringExecutionId !== null).map(({ id }) => id);
    const observation: Observation = {
      sessionId: session.id,
      from,
      to,
      queueIds: queue.items.map(({ id }) => id),
      reserved,
      by,
    };
    this.#history.observations.push(observation);
    return queue;
  }

  /** Leaves all streams. */
  leave(): void {
    for (const leave of [...this.#open]) leave();
  }

  /** Streams that are open now. */
  get streams(): number {
    return this.#open.size;
  }

  #begin(session: ChatSession, action: Action, main: Slot): Operation {
    const at = now();
    const operation: Operation = {
      client: this.number,
      sessionId: session.id,
      main: main.instance?.name ?? main.name,
      from: at,
      to: at,
      action,
      outcome: { kind: 'unknown', why: 'under way' },
    };
    this.#history.operations.push(operation);
    return operation;
  }

  #end(operation: Operation, outcome: Outcome): void {
    operation.to = now();
    operation.outcome = outcome;
    if (outcome.kind === 'unknown' && /^50[0124]/.test(outcome.why))
      this.#history.violation('no answer is a fault of the product', `${outcome.why} to ${JSON.stringify(operation)}`);
  }

  #record(
    session: ChatSession,
    of: StreamRecord['of'],
    main: Slot,
    after: string | null,
    executionId: string | null,
  ): StreamRecord {
    const common = { client: this.number, sessionId: session.id, of, instance: main.instance, after, executionId };
    return { ...common, openedAt: now(), endedAt: null, ending: 'open', mistake: null, events: [] };
  }
}

const UNSENT: Outcome = { kind: 'unsent' };

/** What a client learns from an event. */
function saw(session: ChatSession, record: StreamRecord, { id, data, type }: StreamEvent): void {
  sawExecution(session, data.executionId);
  if (type === 'execution-started') record.executionId = String(data.executionId);
  if (type === 'tool-call-suspended')
    session.suspensions.push({ runId: String(data.runId), toolCallId: String(data.toolCallId) });
  if (id !== undefined && record.executionId !== null) session.cursors.set(record.executionId, id);
}

/** The ids of an accepted message. */
export function acceptedIds(body: Readonly<Record<string, unknown>>): AcceptedIds {
  return { queueId: String(body.queueId), messageId: String(body.messageId) };
}
