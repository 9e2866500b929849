import { readSteered } from '@turnkeep/shared/chat/events-from-record';
import type { AcceptedAnswer } from '@turnkeep/shared/chat/resume';
import type { Accepted } from '@turnkeep/shared/contract/chat';
import { type Database, DatabaseAway } from '@turnkeep/shared/db/database';
import type { SseConnection } from './connection.js';
import { type Cursor, formatCursor } from './cursor.js';
import { type Followed, Follower, type FollowerDeps } from './follower.js';
import type { OpenStream } from './streams.js';
import type { Wait, WaitedOutcome } from './waiting.js';

const START: Cursor = { n: 0, sub: 0 };
/** How soon a read that did not reach Postgres is tried again, in ms. */
const RETRY_MS = 200;

/**
 * The stream that answers an accepted message (contract, section 4): `message-queued`, then nothing until something becomes
 * of the item, then its turn; or `message-steered`, or `message-removed`, and the end.
 */
export async function streamMessage(
  deps: FollowerDeps,
  stream: OpenStream,
  accepted: Accepted,
  wait: Wait,
): Promise<void> {
  const { connection } = stream;
  const { queueId, sessionId, messageId } = accepted;
  connection.onClose(wait.close);
  connection.send({ type: 'message-queued', queueId, sessionId, messageId });
  const result = await wait.outcome;
  if (result === null || connection.closed) return;
  if (result.outcome === 'removed') connection.send({ type: 'message-removed', queueId });
  else if (result.outcome === 'steered') await sendSteered(deps.db, stream, queueId);
  else if (result.executionId)
    await follow(deps, stream, { sessionId, executionId: result.executionId, after: START, from: fromOf(result) });
  connection.end();
}

/**
 * The stream that answers an accepted answer (contract, section 5): `resume-accepted`, then the continuation. While other
 * calls of the run still wait, the run stays suspended and says so; a Stop meanwhile cancels the accepted answer.
 */
export async function streamResume(
  deps: FollowerDeps,
  stream: OpenStream,
  accepted: AcceptedAnswer,
  wait: Wait,
): Promise<void> {
  const { connection } = stream;
  const { sessionId, runId, toolCallId, remaining, executionId, usage, finalN } = accepted;
  connection.onClose(wait.close);
  connection.send({ type: 'resume-accepted', sessionId, runId, toolCallId, remaining });
  const result = remaining > 0 ? null : await wait.outcome;
  if (remaining > 0 || result?.outcome === 'cancelled') {
    const status = remaining > 0 ? 'suspended' : 'cancelled';
    const done = { type: 'done', sessionId, executionId, status, usage };
    connection.write(`id: ${formatCursor(executionId, { n: finalN, sub: 0 })}\ndata: ${JSON.stringify(done)}\n\n`);
  } else if (result?.executionId) {
    const followed = { sessionId, executionId: result.executionId, after: START, from: fromOf(result) };
    await follow(deps, stream, followed);
  }
  wait.close();
  connection.end();
}

function fromOf({ isNow }: WaitedOutcome): Followed['from'] {
  return isNow ? 'now' : 'start';
}

/** Follows one execution on an open stream until it is done. */
export async function follow(deps: FollowerDeps, stream: OpenStream, followed: Followed): Promise<void> {
  const follower = new Follower(deps, stream.connection, followed);
  stream.phase = 'following';
  stream.follower = follower;
  await follower.run();
}

async function sendSteered(db: Database, { connection }: OpenStream, queueId: string): Promise<void> {
  const steered = await whileOpen(connection, () => readSteered(db, queueId));
  if (!steered) return;
  const { executionId, message, n } = steered;
  const event = { type: 'message-steered', queueId, executionId, message };
  connection.write(`id: ${formatCursor(executionId, { n, sub: 0 })}\ndata: ${JSON.stringify(event)}\n\n`);
}

/** Reads what a stream must still say, again and again while Postgres is away; null where the reader left meanwhile. */
async function whileOpen<T>(connection: SseConnection, read: () => Promise<T>): Promise<T | null> {
  while (!connection.closed) {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof DatabaseAway)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  return null;
}
