import { randomUUID } from 'node:crypto';
import type { Accepted, Chat, Queue } from '../support/chat.js';
import type { Cluster } from '../support/cluster.js';
import { PATIENCE_MS } from '../support/deadline.js';
import { unique } from '../support/environment.js';
import { type Gate, gate } from '../support/gate.js';
import type { HttpResponse } from '../support/http.js';
import { callTool, cut, type Part, Reply, say } from '../support/model-script.js';
import { QueueClient } from '../support/queue.js';
import type { SseStream } from '../support/sse-stream.js';
import type { Op, StepEnd } from './queue-model.js';

/** More model requests than a run of commands can cause. */
const REQUESTS = 400;
const ENDS: Record<StepEnd, Reply> = { call: callTool('quick', {}), turn: say('.'), broken: cut() };

/** An answer of the model that stands still until the test decides how it ends. */
interface HeldReply {
  readonly reply: Reply;
  readonly gate: Gate;
  readonly parts: Part[];
}

/** A real session, driven by the model's ops. Each of them may go through another main, as another client's. */
export class RealSession {
  readonly sessionId = randomUUID();
  /** In every text of the session, so that the scripted model knows its requests. */
  readonly marker = unique('model');
  readonly accepted: Accepted[] = [];
  readonly streams = new Map<number, SseStream>();
  readonly #replies: HeldReply[];
  readonly #firstRequest: number;
  #executionIds: string[] = [];

  constructor(
    readonly cluster: Cluster,
    readonly chat: Chat,
  ) {
    this.#replies = Array.from({ length: REQUESTS }, heldReply);
    this.#firstRequest = cluster.model.requests.length;
    cluster.model.on(this.marker, ...this.#replies.map(({ reply }) => reply));
  }

  /** The model requests of this session; nobody else uses the cluster meanwhile. */
  get requests() {
    return this.cluster.model.requests.slice(this.#firstRequest);
  }

  /** Makes a change and answers, once `canonical` is called, with what the client was told in the model's words. */
  async run(op: Op, main: number): Promise<() => string> {
    const queue = new QueueClient(this.chat, this.sessionId, main);
    const id = (key: number) => this.accepted[key]?.queueId ?? randomUUID();
    switch (op.kind) {
      case 'send':
        await this.#send(op.text, main);
        return () => '202';
      case 'end':
        this.#end(op.by);
        return () => 'none';
      case 'stop': {
        const { cancelRequested } = await this.chat.stop(this.sessionId, this.#executionIds[op.execution] ?? '', main);
        return () => String(cancelRequested);
      }
      case 'edit': {
        const response = await queue.edit(id(op.key), op.text);
        return () => this.#told(response, () => ` ${response.json().message}`);
      }
      case 'remove': {
        const response = await queue.remove(id(op.key));
        return () => this.#told(response, () => '');
      }
      case 'reorder':
        return this.#listed(await queue.reorder(id(op.key), id(op.target), op.expected.map(id)));
      case 'steer': {
        const executionId = this.#executionIds[op.execution] ?? randomUUID();
        return this.#listed(await queue.steer(id(op.key), executionId));
      }
      case 'giveBack':
        return this.#listed(await queue.giveBack(id(op.key)));
    }
  }

  /** Reads until what can be seen of the session is one of these; answers with it. */
  async until(expected: readonly string[]): Promise<string> {
    const end = performance.now() + PATIENCE_MS;
    for (;;) {
      const seen = await this.#observe();
      if (expected.includes(seen)) return seen;
      if (performance.now() > end) throw new Error(`seen: ${seen}\nexpected one of:\n${expected.join('\n')}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async #observe(): Promise<string> {
    if (this.accepted.length === 0)
      return JSON.stringify({ queue: this.#view(NO_QUEUE), executions: [], requests: 0, users: [] });
    // In this order: what was read later is newer, and a running execution's request is the last thing that comes.
    const queue = await this.chat.queue(this.sessionId, 1);
    const rows = await this.chat.executions(this.sessionId, 0);
    const { messages } = await this.chat.transcript(this.sessionId, 1);
    this.#executionIds = rows.map(({ id }) => id);
    const users = messages.filter(({ role }) => role === 'user').map(({ content }) => content[0]?.text);
    const executions = rows.map(({ status }) => status);
    return JSON.stringify({ queue: this.#view(queue), executions, requests: this.requests.length, users });
  }

  async #send(text: string, main: number): Promise<void> {
    const key = this.accepted.length;
    // Every third has a stream of its own, which must be told the truth in the end.
    if (key % 3 > 0) {
      this.accepted.push(await this.chat.accept(text, { sessionId: this.sessionId, main }));
      return;
    }
    const stream = await this.chat.send(text, { sessionId: this.sessionId, main });
    this.accepted.push((await stream.until('message-queued')).data as unknown as Accepted);
    this.streams.set(key, stream);
  }

  #end(by: StepEnd): void {
    const held = this.#replies[this.requests.length - 1];
    held?.parts.push(...ENDS[by].parts);
    held?.gate.open();
  }

  #listed(response: HttpResponse): () => string {
    return () => this.#told(response, () => ` ${this.#view(response.json<Queue>())}`);
  }

  #told(response: HttpResponse, body: () => string): string {
    if (response.status !== 200) return `${response.status} ${response.json().code}`;
    return `200${body()}`;
  }

  #view({ items, steerableExecutionId }: Queue): string {
    const key = (id: string) => this.accepted.findIndex(({ queueId }) => queueId === id);
    const execution = (id: string | null) => (id === null ? null : this.#executionIds.indexOf(id));
    return JSON.stringify({
      items: items.map(({ id, message, steeringExecutionId }) => [key(id), message, execution(steeringExecutionId)]),
      steerable: execution(steerableExecutionId),
    });
  }
}

const NO_QUEUE: Queue = { items: [], steerableExecutionId: null };

function heldReply(): HeldReply {
  const stands = gate();
  const parts: Part[] = [
    { kind: 'text', text: 'hm' },
    { kind: 'gate', gate: stands },
  ];
  return { reply: new Reply(parts), gate: stands, parts };
}
