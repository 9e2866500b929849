import type { ExecutionStatus, Usage } from '../contract/events.js';
import type { ExecutionError } from '../contract/execution.js';
import type { Database, Query } from '../db/database.js';
import { type Batch, type Owner, recordBatch } from './record.js';
import { refreshSession } from './session-status.js';
import { type ConsumedSteers, consumeSteers, returnSteers, type SegmentPlace } from './steers.js';

export type FinalStatus = Exclude<ExecutionStatus, 'running' | 'suspended'>;

export interface Settlement {
  status: FinalStatus;
  error: ExecutionError | null;
  /** The number of `done`. An `error` event, where there is one, has the number before it. */
  finalN: number;
  /** What the record still lacks. */
  batch: Batch;
}

/** What was settled. `status` is `cancelled` where a Stop had been committed before. */
export interface Settled {
  status: FinalStatus;
  error: ExecutionError | null;
  usage: Usage | null;
  /** The number of `done`. */
  finalN: number;
  /** True where the session has something to start now. */
  ready: boolean;
}

/** What a call that was under way is recorded as, where its worker died or was interrupted (section 5). */
export const MAY_HAVE_RUN = 'interrupted; it may have run';
/** A call that still waited, or whose answer nobody had acted on. */
const NOT_RUN = 'interrupted; it was not run';
const CUT_OFF = 'the turn ended before it was through';

/**
 * Settles an execution: one transaction under the session lock writes what is left to record, the final status, the ends
 * of calls that were under way, and gives unconsumed steers back. After a Stop that was committed, the status is
 * `cancelled`, whatever the turn came to.
 * @returns null where the execution is no longer this worker's ('moved on'): nothing was written
 */
export async function settleExecution(db: Database, owner: Owner, settlement: Settlement): Promise<Settled | null> {
  return db.session(owner.sessionId, async (tx) => settleLocked(tx, owner, settlement));
}

/**
 * The end of a turn that ran through (section 6): the last boundary and the settling are one transaction. It consumes the
 * messages that are reserved and the turn goes on, or it closes steering and settles as `success`.
 */
export async function settleOrSteer(
  db: Database,
  owner: Owner,
  settlement: Settlement,
  place: SegmentPlace,
): Promise<Settled | ConsumedSteers | null> {
  return db.session(owner.sessionId, async (tx) => {
    const steered = await consumeSteers(tx, owner, settlement.batch, place);
    if (steered !== null) return steered;
    return settleLocked(tx, owner, settlement);
  });
}

async function settleLocked(tx: Query, owner: Owner, settlement: Settlement): Promise<Settled | null> {
  if (!(await recordBatch(tx, owner, settlement.batch))) return null;
  const [row] = await tx.query<{
    status: FinalStatus;
    error_code: string | null;
    input: number | null;
    output: number;
  }>(
    `update executions set
       status = case when cancel_requested_at is not null and $2 <> 'interrupted' then 'cancelled' else $2 end,
       error_code = case when cancel_requested_at is not null and $2 <> 'interrupted' then null else $3 end,
       error_message = case when cancel_requested_at is not null and $2 <> 'interrupted' then null else $4 end,
       steerable = false, open_blocks = '[]', finished_at = clock_timestamp(), final_n = $5
     where id = $1
     returning status, error_code, input_tokens as input, output_tokens as output`,
    [
      owner.executionId,
      settlement.status,
      settlement.error?.code ?? null,
      settlement.error?.message ?? null,
      settlement.finalN,
    ],
  );
  if (!row) return null;
  await endCalls(tx, owner.executionId, row.status);
  await returnSteers(tx, owner.executionId);
  const { ready } = await refreshSession(tx, owner.sessionId);
  return {
    ready,
    finalN: settlement.finalN,
    status: row.status,
    error: row.error_code === null ? null : settlement.error,
    usage: row.input === null ? null : { inputTokens: row.input, outputTokens: row.output },
  };
}

/** Records how the calls ended that were under way when their execution ended. */
export async function endCalls(tx: Query, executionId: string, status: FinalStatus): Promise<void> {
  const state = status === 'cancelled' ? 'cancelled' : 'error';
  const error = status === 'cancelled' ? null : status === 'interrupted' ? MAY_HAVE_RUN : CUT_OFF;
  await tx.query(
    `update tool_calls set state = $2, error = case when state = 'suspended' and $5 then $4 else $3 end
     where execution_id = $1 and state in ('running', 'suspended')`,
    [executionId, state, error, NOT_RUN, status === 'interrupted'],
  );
}
