import type { Usage } from '../contract/events.js';
import type { SuspensionKind } from '../contract/execution.js';
import { newId } from '../contract/ids.js';
import type { Database, Query } from '../db/database.js';
import { CHECKPOINT_VERSION } from './checkpoint-version.js';
import { type Batch, type Owner, recordBatch } from './record.js';
import { refreshSession } from './session-status.js';
import { returnSteers } from './steers.js';

/** A call that waits for a person, with the number of its `tool-call-suspended` event. */
export interface SuspendedCall {
  callId: string;
  kind: SuspensionKind;
  n: number;
}

export interface Suspension {
  state: Buffer;
  calls: SuspendedCall[];
  /** Delegate calls inside which a call waits. */
  delegates: string[];
  /** The number of `done`. */
  finalN: number;
  batch: Batch;
}

/**
 * Suspends a run (contract, section 5 and issue of approvals): one transaction under the session lock writes what is left to
 * record, the checkpoint, what waits, and the status; unconsumed steers go back. From then on the session waits for a person.
 * @returns 'marked' where a Stop had been committed: nothing was written, and the execution is to be cancelled; null where
 *   it is no longer this worker's
 */
export async function suspendExecution(
  db: Database,
  owner: Owner,
  suspension: Suspension,
): Promise<{ usage: Usage | null } | 'marked' | null> {
  return db.session(owner.sessionId, async (tx) => {
    const [marked] = await tx.query('select id from executions where id = $1 and cancel_requested_at is not null', [
      owner.executionId,
    ]);
    if (marked) return 'marked';
    if (!(await recordBatch(tx, owner, suspension.batch))) return null;
    await insertCheckpoint(tx, owner, suspension);
    const [row] = await tx.query<{ input: number | null; output: number }>(
      `update executions set status = 'suspended', steerable = false, open_blocks = '[]',
         finished_at = clock_timestamp(), final_n = $2 where id = $1
       returning input_tokens as input, output_tokens as output`,
      [owner.executionId, suspension.finalN],
    );
    await returnSteers(tx, owner.executionId);
    await refreshSession(tx, owner.sessionId);
    const isKnown = row && row.input !== null;
    return { usage: isKnown ? { inputTokens: row.input ?? 0, outputTokens: row.output } : null };
  });
}

async function insertCheckpoint(tx: Query, owner: Owner, { state, calls, delegates }: Suspension): Promise<void> {
  await tx.query(
    `with checkpoint as (
       insert into checkpoints (id, session_id, run_id, execution_id, status, version, state)
       values ($1, $2, $3, $4, 'open', $5, $6)
     ), states as (
       update tool_calls set state = 'suspended' where id = any($7::text[]) or id = any($8::text[])
     )
     insert into suspensions (tool_call_id, checkpoint_id, ordinal, kind, n)
     select c.call_id, $1, c.position, c.kind, c.n
     from unnest($7::text[], $9::text[], $10::bigint[]) with ordinality as c (call_id, kind, n, position)`,
    [
      newId(),
      owner.sessionId,
      owner.runId,
      owner.executionId,
      CHECKPOINT_VERSION,
      state,
      calls.map((call) => call.callId),
      delegates,
      calls.map((call) => call.kind),
      calls.map((call) => call.n),
    ],
  );
}
