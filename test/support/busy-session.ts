import type { Chat } from './chat.js';
import { unique } from './environment.js';
import type { Gate } from './gate.js';
import type { ModelServer } from './model-server.js';
import { QueueClient } from './queue.js';

/** A session whose first turn stands still, with messages queued behind it: what tests of the queue begin with. */
export interface BusySession {
  readonly sessionId: string;
  /** The execution that runs, and the item that it started from. */
  readonly executionId: string;
  readonly startedId: string;
  /** The queue through main 0, and through main 1. */
  readonly queue: QueueClient;
  readonly other: QueueClient;
  /** The queued items in their order. */
  readonly ids: readonly string[];
  readonly held: Gate;
  /** Lets the session's turns run until so many are through. */
  finish(turns: number): Promise<void>;
}

/** Starts a session whose first turn stands still, and queues messages of these texts. */
export async function busySession(chat: Chat, model: ModelServer, ...texts: string[]): Promise<BusySession> {
  const marker = unique('busy');
  const held = model.hold(marker);
  const { sessionId, queueId } = await chat.accept(marker);
  await held.reached();
  const ids: string[] = [];
  for (const [at, text] of texts.entries()) ids.push((await chat.accept(text, { sessionId, main: at % 2 })).queueId);
  const [row] = await chat.executions(sessionId);
  const queue = new QueueClient(chat, sessionId);
  return {
    sessionId,
    executionId: row?.id ?? '',
    startedId: queueId,
    queue,
    other: queue.on(1),
    ids,
    held,
    finish: async (turns) => {
      held.open();
      await chat.settled(sessionId, turns);
    },
  };
}
