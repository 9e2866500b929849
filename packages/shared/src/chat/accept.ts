import type { Accepted } from '../contract/chat.js';
import { newId } from '../contract/ids.js';
import { ProblemError } from '../contract/problems.js';
import type { Database, Query, SessionRow } from '../db/database.js';
import { attach, giveUp, type ReadyAttachment } from './attachments.js';
import { claimKey, type IdempotencyKey, keepAnswer } from './idempotency.js';
import type { SessionRef } from './refs.js';
import { refreshSession } from './session-status.js';
import { retitle, titleOf } from './title.js';

export interface Acceptance {
  /** Where the message goes. A `sessionId` that nobody has used yet becomes a new session. */
  session: SessionRef;
  queueId: string;
  text: string;
  attachments: ReadyAttachment[];
  idempotency: IdempotencyKey | null;
  maxPending: number;
}

export interface AcceptedMessage extends Accepted {
  /** True where an earlier request with the same key was accepted: this one has added nothing. */
  repeated: boolean;
}

/**
 * Accepts a message (contract, section 4): one transaction makes or locks the session, and writes the message, its
 * attachments and its queue item at the end of the queue. After the commit it is never lost.
 *
 * @throws ProblemError `not_found` (the session, or an attachment that was sent before, is not the user's),
 *   `queue_full`, `idempotency_mismatch`
 */
export async function acceptMessage(db: Database, acceptance: Acceptance): Promise<AcceptedMessage> {
  const { session, idempotency } = acceptance;
  return db.session(session.sessionId, async (tx, locked) => {
    if (idempotency) {
      const first = await claimKey<Accepted>(tx, session.userId, idempotency);
      if (first) {
        await giveUp(tx, acceptance.attachments);
        const { queueId, sessionId, messageId } = first;
        return { queueId, sessionId, messageId, repeated: true };
      }
    }
    if (locked) assertOwn(locked, session);
    else await makeSession(tx, acceptance);
    const accepted = await enqueue(tx, acceptance);
    // What was first may have been removed before anything started.
    if (locked?.execution_count === 0) await retitle(tx, session.sessionId);
    if (idempotency) await keepAnswer(tx, session.userId, idempotency, accepted);
    return { ...accepted, repeated: false };
  });
}

function assertOwn(row: SessionRow, ref: SessionRef): void {
  const own = row.user_id === ref.userId && row.agent_id === ref.agentId && row.project_id === ref.projectId;
  if (!own) throw new ProblemError('not_found', 'There is no such session.');
}

/** Two first sends at once: the second waits at the primary key, and then finds the first one's session. */
async function makeSession(tx: Query, { session, text, attachments }: Acceptance): Promise<void> {
  const made = await tx.query(
    `insert into sessions (id, project_id, agent_id, user_id, title) values ($1, $2, $3, $4, $5)
     on conflict (id) do nothing returning id`,
    [session.sessionId, session.projectId, session.agentId, session.userId, titleOf(text, attachments[0]?.title ?? '')],
  );
  if (made.length > 0) return;
  const [row] = await tx.query<SessionRow>(
    'select * from sessions where id = $1 and deleted_at is null for no key update',
    [session.sessionId],
  );
  if (!row) throw new ProblemError('not_found', 'There is no such session.');
  assertOwn(row, session);
}

async function enqueue(tx: Query, acceptance: Acceptance): Promise<Accepted> {
  const { session, queueId, text, maxPending } = acceptance;
  const messageId = newId();
  const placed = await tx.query(
    `with place as (
       update sessions set next_position = next_position + 1
       where id = $1 and (select count(*) from queue_items where session_id = $1) < $5
         and exists (select from agents a where a.id = sessions.agent_id and a.deleted_at is null)
       returning next_position - 1 as position
     ), message as (
       insert into messages (id, session_id, role, text) select $2, $1, 'user', $3 from place
     )
     insert into queue_items (id, session_id, message_id, position) select $4, $1, $2, position from place returning id`,
    [session.sessionId, messageId, text, queueId, maxPending],
  );
  if (placed.length === 0) {
    // An agent that was deleted since the request was checked takes nothing more.
    const [agent] = await tx.query('select id from agents where id = $1 and deleted_at is null', [session.agentId]);
    if (!agent) throw new ProblemError('not_found', 'There is no such agent.');
    throw new ProblemError('queue_full', `A session holds at most ${maxPending} messages that wait.`);
  }
  await attach(tx, session, messageId, acceptance.attachments);
  await refreshSession(tx, session.sessionId);
  return { queueId, sessionId: session.sessionId, messageId };
}
