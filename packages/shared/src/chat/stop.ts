import { ProblemError } from '../contract/problems.js';
import type { Database, Query } from '../db/database.js';
import type { SessionRef } from './refs.js';
import { refreshSession } from './session-status.js';
import { returnSteers } from './steers.js';

/** What a Stop did: who runs the execution and must hear of it, or which streams wait for a resume that it cancelled. */
export interface StopResult {
  cancelRequested: boolean;
  /** Set where a running execution was marked: its worker aborts it. */
  workerId: string | null;
  /** Set where a suspended execution was cancelled. */
  checkpointId: string | null;
  /** True where the session has something to start now. */
  ready: boolean;
}

const NOTHING: StopResult = { cancelRequested: false, workerId: null, checkpointId: null, ready: false };

/**
 * Stop (contract, section 5): marks a running execution, or cancels a suspended one whose run has not gone on. It names one
 * execution and cannot touch another. Under the session lock it closes steering and gives reservations back before
 * anybody is signalled; the owner finalises.
 * @throws ProblemError `not_found` where the session has no such execution
 */
export async function requestStop(db: Database, session: SessionRef, executionId: string): Promise<StopResult> {
  return db.session(session.sessionId, async (tx, locked) => {
    const [execution] = locked ? await findExecution(tx, session.sessionId, executionId) : [];
    if (!execution) throw new ProblemError('not_found', 'There is no such execution.');
    if (execution.status === 'running') return markRunning(tx, session.sessionId, executionId, execution.worker_id);
    if (execution.status === 'suspended') return cancelSuspended(tx, session.sessionId, executionId);
    return NOTHING;
  });
}

async function findExecution(tx: Query, sessionId: string, executionId: string) {
  return tx.query<{ status: string; worker_id: string }>(
    'select status, worker_id from executions where id = $1 and session_id = $2',
    [executionId, sessionId],
  );
}

async function markRunning(tx: Query, sessionId: string, executionId: string, workerId: string): Promise<StopResult> {
  await tx.query(
    `update executions set cancel_requested_at = coalesce(cancel_requested_at, clock_timestamp()), steerable = false
     where id = $1`,
    [executionId],
  );
  await returnSteers(tx, executionId);
  await refreshSession(tx, sessionId);
  return { cancelRequested: true, workerId, checkpointId: null, ready: false };
}

/** A suspended execution has no owner: Stop finalises it. One that has a continuation keeps its status for good. */
export async function cancelSuspended(tx: Query, sessionId: string, executionId: string): Promise<StopResult> {
  const [checkpoint] = await tx.query<{ id: string }>(
    `update checkpoints set status = 'cancelled', state = null
     where execution_id = $1 and status in ('open', 'answered') returning id`,
    [executionId],
  );
  if (!checkpoint) return NOTHING;
  await tx.query(
    `update executions set status = 'cancelled', finished_at = clock_timestamp(),
       cancel_requested_at = clock_timestamp() where id = $1`,
    [executionId],
  );
  await tx.query(
    `update tool_calls set state = 'cancelled' where session_id = $1 and state in ('running', 'suspended')
       and run_id = (select run_id from executions where id = $2)`,
    [sessionId, executionId],
  );
  const { ready } = await refreshSession(tx, sessionId);
  return { cancelRequested: true, workerId: null, checkpointId: checkpoint.id, ready };
}
