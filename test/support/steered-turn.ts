import type { Accepted, Chat, Transcript } from './chat.js';
import { unique } from './environment.js';
import { type Gate, gate } from './gate.js';
import { callTool, cut, type Reply, reply, say } from './model-script.js';
import type { ModelServer } from './model-server.js';
import { QueueClient } from './queue.js';
import type { SseStream } from './sse-stream.js';

/** A turn whose first model request stands still: what steering tests begin with. */
export interface SteeredTurn {
  readonly marker: string;
  readonly sessionId: string;
  readonly executionId: string;
  /** The stream of the message that the turn started with; read up to `execution-started`. */
  readonly stream: SseStream;
  /** The queue through main 0, and through main 1. */
  readonly queue: QueueClient;
  readonly other: QueueClient;
  /** Lets the first request come to its end. */
  readonly held: Gate;
  /** Queues a message behind it. */
  accept(text: string): Promise<Accepted>;
}

/** How the first step ends, once it is let go: by a call of the tool `quick`, as the end of the turn, or broken off. */
const ENDS = {
  call: (held: Gate) => reply(say('one', held), callTool('quick', {})),
  turn: (held: Gate) => say('one', held),
  broken: (held: Gate) => reply(say('one', held), cut()),
};

/** Starts a turn that says 'one' and stands still. `next` are its next answers, as long as nothing was steered in. */
export async function startSteeredTurn(
  chat: Chat,
  model: ModelServer,
  { ends = 'call', next = [say('two')] }: { ends?: keyof typeof ENDS; next?: Reply[] } = {},
): Promise<SteeredTurn> {
  const marker = unique('turn');
  const held = gate();
  model.on(marker, ENDS[ends](held), ...next);
  const stream = await chat.send(marker);
  const { sessionId, executionId } = (await stream.until('execution-started')).data;
  await held.reached();
  const queue = new QueueClient(chat, String(sessionId));
  return {
    marker,
    sessionId: String(sessionId),
    executionId: String(executionId),
    stream,
    queue,
    other: queue.on(1),
    held,
    accept: (text) => chat.accept(text, { sessionId: String(sessionId), main: 1 }),
  };
}

/** The texts of a request's user messages, oldest first. */
export function userTexts(body: { readonly messages?: readonly { role?: unknown; content?: unknown }[] }): string[] {
  return (body.messages ?? []).flatMap(({ role, content }) => {
    if (role !== 'user') return [];
    if (typeof content === 'string') return [content];
    return [(content as { text?: string }[]).map((part) => part.text ?? '').join('')];
  });
}

/** What a transcript shows: each message as its role with its texts, calls and files. */
export function shown({ messages }: Transcript): unknown[][] {
  return messages.map(({ role, content }) => [
    role,
    ...content.map((part) => part.text ?? part.toolName ?? part.fileName),
  ]);
}
