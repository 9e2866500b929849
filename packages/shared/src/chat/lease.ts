import type { Query } from '../db/database.js';
import { CHECKPOINT_VERSION } from './checkpoint-version.js';

/** An execution that a worker still owns, and whether somebody asked to stop it. */
export interface OwnedExecution {
  id: string;
  cancelRequested: boolean;
}

/**
 * Prolongs the leases of the executions that a worker runs, in one statement, by Postgres' clock (contract, section 9.6).
 * What it does not answer any more is somebody else's: its lease ran out, or it was settled. An execution that is recorded
 * for the worker and that it does not know of (the answer to its claim got lost) is not prolonged, and so interrupted.
 */
export async function extendLeases(
  db: Query,
  workerId: string,
  ids: string[],
  leaseMs: number,
): Promise<OwnedExecution[]> {
  return db.query<OwnedExecution>(
    `update executions set lease_expires_at = clock_timestamp() + $3 * interval '1 ms'
     where id = any($2) and worker_id = $1 and status = 'running' and lease_expires_at > clock_timestamp()
     returning id, cancel_requested_at is not null as "cancelRequested"`,
    [workerId, ids, leaseMs],
  );
}

/** Running executions whose lease is over, oldest first, at most `count`: what a reaper interrupts. */
export async function expiredExecutions(
  db: Query,
  count: number,
): Promise<{ executionId: string; sessionId: string }[]> {
  return db.query(
    `select id as "executionId", session_id as "sessionId" from executions
     where status = 'running' and lease_expires_at <= clock_timestamp() order by lease_expires_at limit $1`,
    [count],
  );
}

/**
 * Sessions that could start something for at least `unservedMs` and that nobody has served, oldest first: what a sweep
 * starts, whatever happened to their wake-up (section 9.3). Those whose owner may not execute are passed over, and those whose
 * checkpoint only a newer release can read.
 */
export async function unservedSessions(
  db: Query,
  unservedMs: number,
  count: number,
): Promise<{ sessionId: string; agentId: string }[]> {
  return db.query(
    `select s.id as "sessionId", s.agent_id as "agentId" from sessions s
     join members m on m.project_id = s.project_id and m.user_id = s.user_id and m.role <> 'viewer'
     where s.ready_at <= clock_timestamp() - $1 * interval '1 ms' and not exists (
       select from checkpoints c where c.session_id = s.id and c.status = 'answered' and c.version > $3)
     order by s.ready_at limit $2`,
    [unservedMs, count, CHECKPOINT_VERSION],
  );
}

/** Whether a Stop has marked an execution. */
export async function isCancelRequested(db: Query, executionId: string): Promise<boolean> {
  const [row] = await db.query<{ marked: boolean }>(
    'select cancel_requested_at is not null as marked from executions where id = $1',
    [executionId],
  );
  return row?.marked ?? true;
}
