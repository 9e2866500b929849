import type { Chat, Queue } from './chat.js';
import type { HttpResponse } from './http.js';

/** The changes of one session's queue (contract, section 6), as a client sends them: each answers with whatever came. */
export class QueueClient {
  constructor(
    readonly chat: Chat,
    readonly sessionId: string,
    /** Number of the main that gets the requests. */
    readonly main = 0,
  ) {}

  /** The same queue through another main. */
  on(main: number): QueueClient {
    return new QueueClient(this.chat, this.sessionId, main);
  }

  read(): Promise<Queue> {
    return this.chat.queue(this.sessionId, this.main);
  }

  /** The ids of the pending items in their order. */
  async ids(): Promise<string[]> {
    return (await this.read()).items.map((item) => item.id);
  }

  /** The ids that a reorder expects: pending, without reserved steers. */
  async movable(): Promise<string[]> {
    return (await this.read()).items.filter((item) => item.steeringExecutionId === null).map((item) => item.id);
  }

  edit(queueId: string, message: unknown): Promise<HttpResponse> {
    return this.#request('PATCH', `/${queueId}`, { message });
  }

  remove(queueId: string): Promise<HttpResponse> {
    return this.#request('DELETE', `/${queueId}`);
  }

  reorder(queueId: string, targetQueueId: string, expectedQueueIds: readonly string[]): Promise<HttpResponse> {
    return this.#request('POST', `/${queueId}/reorder`, { targetQueueId, expectedQueueIds });
  }

  steer(queueId: string, executionId: string): Promise<HttpResponse> {
    return this.#request('POST', `/${queueId}/steer`, { executionId });
  }

  giveBack(queueId: string): Promise<HttpResponse> {
    return this.#request('DELETE', `/${queueId}/steer`);
  }

  #request(method: string, rest: string, body?: unknown): Promise<HttpResponse> {
    return this.chat.http(this.main).request(this.chat.path(`/${this.sessionId}/queue${rest}`), { method, body });
  }
}
