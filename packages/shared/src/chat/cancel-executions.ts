import type { Query } from '../db/database.js';
import type { MarkedExecution } from './refs.js';
import { returnSteers } from './steers.js';

/** Whose executions to cancel: a member's in a project, or all of an agent. */
export type CancelScope = { projectId: string; userId: string } | { agentId: string };

/**
 * Marks running executions for cancelling, in the transaction that takes the right to run them away (contract, section 2).
 * Call it after the change of the role or agent, since what is claimed meanwhile waits for that row. The workers are told
 * after the commit, and otherwise read the mark with their next heartbeat.
 */
export async function cancelExecutionsOf(tx: Query, scope: CancelScope): Promise<MarkedExecution[]> {
  const [clause, values] =
    'agentId' in scope
      ? ['agent_id = $1', [scope.agentId]]
      : ['project_id = $1 and user_id = $2', [scope.projectId, scope.userId]];
  // The sessions first, in one order, then what runs in them: every change of a session holds its row.
  await tx.query(
    `select id from sessions where ${clause} and deleted_at is null and status = 'running' order by id for no key update`,
    values,
  );
  const marked = await tx.query<MarkedExecution>(
    `update executions e set cancel_requested_at = coalesce(cancel_requested_at, clock_timestamp()), steerable = false
     from sessions s where s.id = e.session_id and e.status = 'running' and ${clause}
     returning e.id as "executionId", e.worker_id as "workerId", json_build_object('sessionId', s.id,
       'projectId', s.project_id, 'agentId', s.agent_id, 'userId', s.user_id) as session`,
    values,
  );
  for (const { executionId } of marked) await returnSteers(tx, executionId);
  return marked;
}
