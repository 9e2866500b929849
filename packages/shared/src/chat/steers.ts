import type { EventMessage } from '../contract/events.js';
import { newId } from '../contract/ids.js';
import type { Database, Query } from '../db/database.js';
import { MESSAGE } from './attachments.js';
import { isCancelRequested } from './lease.js';
import { type Batch, type Owner, recordBatch } from './record.js';
import { refreshSession } from './session-status.js';

/** A message that became part of a running execution, with the number of its `message-steered` event. */
export interface SteeredMessage {
  queueId: string;
  message: EventMessage;
  n: number;
}

/** The messages that a boundary consumed, and the segment that the assistant begins after them. */
export interface ConsumedSteers {
  steered: SteeredMessage[];
  segmentId: string;
  place: number;
}

/** The place of the assistant's segment now, inside its execution. */
export interface SegmentPlace {
  place: number;
}

/** Gives the reservations of an execution back: its messages stand at their saved places again. Answers how many. */
export async function returnSteers(tx: Query, executionId: string): Promise<number> {
  const returned = await tx.query(
    `update queue_items set steering_execution_id = null, reserved_order = null
     where steering_execution_id = $1 returning id`,
    [executionId],
  );
  return returned.length;
}

/**
 * A boundary between two steps (contract, section 6): one transaction under the session lock records what came before,
 * links the reserved messages to the execution in reservation order, marks their places in the timeline and deletes
 * their queue rows.
 * @returns 'moved on' where the execution is no longer this worker's; 'cancelled' where a Stop has marked it, so that no
 *   further step begins; null where nothing was consumed
 */
export async function steerBoundary(
  db: Database,
  owner: Owner,
  batch: Batch,
  place: SegmentPlace,
): Promise<ConsumedSteers | null | 'moved on' | 'cancelled'> {
  return db.session(owner.sessionId, async (tx) => {
    const consumed = await consumeSteers(tx, owner, batch, place);
    if (consumed !== null) return consumed;
    if (!(await recordBatch(tx, owner, batch))) return 'moved on';
    return (await isCancelRequested(tx, owner.executionId)) ? 'cancelled' : null;
  });
}

/**
 * Consumes what is reserved for an execution, in the caller's transaction under the session lock. An execution that is
 * marked by a Stop, or is no longer this worker's, consumes nothing. Again with the same batch, after a commit whose
 * answer got lost, it answers what that commit consumed.
 * @returns null where nothing was consumed and nothing was written
 */
export async function consumeSteers(
  tx: Query,
  owner: Owner,
  batch: Batch,
  { place }: SegmentPlace,
): Promise<ConsumedSteers | null> {
  const boundary = await readBoundary(tx, owner, batch.recordedN);
  if (!boundary) return null;
  const { reserved, consumed, segmentId: lastSegment } = boundary;
  if (consumed.length > 0) return { steered: consumed, segmentId: lastSegment, place: place + consumed.length + 1 };
  if (reserved.length === 0 || boundary.isMarked) return null;
  const steered = reserved.map((item, index) => ({ ...item, n: batch.recordedN + 1 + index }));
  const recordedN = batch.recordedN + steered.length;
  if (!(await recordBatch(tx, owner, { ...batch, recordedN, openBlocks: [] }))) return null;
  const segmentId = newId();
  await link(tx, owner, steered, segmentId, place);
  await refreshSession(tx, owner.sessionId);
  return { steered, segmentId, place: place + steered.length + 1 };
}

interface Boundary {
  isMarked: boolean;
  reserved: Omit<SteeredMessage, 'n'>[];
  /** What stands in the timeline behind the batch: an earlier attempt has put it there. */
  consumed: SteeredMessage[];
  segmentId: string;
}

/** What a boundary after event `recordedN` finds; undefined where the execution is no longer this worker's. */
async function readBoundary(tx: Query, owner: Owner, recordedN: number): Promise<Boundary | undefined> {
  const [row] = await tx.query<Boundary>(
    `select e.cancel_requested_at is not null as "isMarked",
       (select coalesce(json_agg(json_build_object('queueId', q.id, 'message', ${MESSAGE}) order by q.reserved_order), '[]'::json)
        from queue_items q join messages m on m.id = q.message_id where q.steering_execution_id = e.id) as reserved,
       (select coalesce(json_agg(json_build_object('queueId', o.queue_id, 'message', ${MESSAGE}, 'n', m.steered_n)
          order by m.steered_n), '[]'::json)
        from messages m join queue_outcomes o on o.message_id = m.id and o.session_id = e.session_id
        where m.first_execution_id = e.id and m.steered_n > $3) as consumed,
       (select m.id from messages m where m.first_execution_id = e.id and m.role = 'assistant'
        order by m.place desc limit 1) as "segmentId"
     from executions e where e.id = $1 and e.worker_id = $2 and e.status = 'running'`,
    [owner.executionId, owner.workerId, recordedN],
  );
  return row;
}

async function link(
  tx: Query,
  owner: Owner,
  steered: SteeredMessage[],
  segmentId: string,
  place: number,
): Promise<void> {
  await tx.query(
    `with consumed as (
       select * from unnest($1::uuid[], $2::uuid[], $3::bigint[]) with ordinality as c (queue_id, message_id, n, position)
     ), moved as (
       update messages m set execution_id = $4, first_execution_id = $4, place_execution = $5,
         place = $6 + c.position, steered_n = c.n
       from consumed c where m.id = c.message_id
     ), removed as (
       delete from queue_items where id = any($1)
     ), segment as (
       insert into messages (id, session_id, role, execution_id, first_execution_id, place_execution, place)
       values ($7, $8, 'assistant', $4, $4, $5, $6 + $9 + 1)
     )
     insert into queue_outcomes (queue_id, session_id, message_id, outcome, execution_id)
     select queue_id, $8, message_id, 'steered', $4 from consumed`,
    [
      steered.map((item) => item.queueId),
      steered.map((item) => item.message.id),
      steered.map((item) => item.n),
      owner.executionId,
      owner.executionNumber,
      place,
      segmentId,
      owner.sessionId,
      steered.length,
    ],
  );
}

/**
 * Closes steering for the last step that the limits permit: what is reserved goes back to its place. Fenced.
 * @returns false where the execution is no longer this worker's
 */
export async function closeSteering(db: Database, owner: Owner): Promise<boolean> {
  return db.session(owner.sessionId, async (tx) => {
    const rows = await tx.query(
      `update executions set steerable = false where id = $1 and worker_id = $2 and status = 'running' returning id`,
      [owner.executionId, owner.workerId],
    );
    if (rows.length === 0) return false;
    if ((await returnSteers(tx, owner.executionId)) > 0) await refreshSession(tx, owner.sessionId);
    return true;
  });
}
