import type { AgentConfig } from '../contract/agent.js';
import type { EventMessage } from '../contract/events.js';
import { newId } from '../contract/ids.js';
import { type Database, isUniqueViolation, type Query, type SessionRow } from '../db/database.js';
import { attachmentsOf } from './attachments.js';
import { CHECKPOINT_VERSION } from './checkpoint-version.js';
import type { SessionRef } from './refs.js';
import { refreshSession } from './session-status.js';

export interface ClaimRequest {
  sessionId: string;
  /** The execution that is recorded where there is something to start. */
  executionId: string;
  workerId: string;
  leaseMs: number;
}

/** An answered checkpoint from which a run continues. */
export interface ClaimedCheckpoint {
  checkpointId: string;
  executionId: string;
  version: number;
  state: Buffer;
}

/** What a worker needs to run what it has claimed. */
export interface Claimed {
  session: SessionRef;
  executionId: string;
  runId: string;
  number: number;
  /** The assistant's segment that the output goes to. */
  segmentId: string;
  /** The place of that segment in the execution; what is steered in comes after it. */
  place: number;
  config: AgentConfig;
  /** Set for a queued message. */
  queueId: string | null;
  message: EventMessage | null;
  /** Set for a continuation. */
  checkpoint: ClaimedCheckpoint | null;
}

/** Why nothing was claimed. `busy`: an execution runs or a checkpoint is open; `unauthorized`: the owner lacks agent:execute. */
export type ClaimResult = { claimed: Claimed } | { claimed: null; reason: 'gone' | 'empty' | 'busy' | 'unauthorized' };

interface Candidate {
  config: AgentConfig;
  agent_deleted: boolean;
  role: string | null;
  running: boolean;
  checkpoint_id: string | null;
  checkpoint_status: 'open' | 'answered' | null;
  checkpoint_execution: string;
  checkpoint_version: number;
  checkpoint_state: Buffer;
  checkpoint_config: AgentConfig;
  run_id: string;
  queue_id: string | null;
  message_id: string;
  text: string;
  attachments: EventMessage['attachments'];
}

/**
 * Claims what a session starts next (contract, section 9.3): the resume that waits, else the first pending message. One
 * transaction under the session lock records the execution with its lease, puts the message in its place of the
 * transcript and deletes the queue item. The caller holds the chat lock. A session in which an execution runs, or whose
 * checkpoint waits for answers, has nothing to start; Postgres itself refuses a second execution.
 */
export async function claimNext(db: Database, request: ClaimRequest): Promise<ClaimResult> {
  try {
    return await db.session(request.sessionId, async (tx, session) => {
      if (!session) return { claimed: null, reason: 'gone' };
      const next = await candidate(tx, session);
      if (!next || next.agent_deleted) return { claimed: null, reason: 'gone' };
      const waits = next.checkpoint_status === 'open' || next.checkpoint_version > CHECKPOINT_VERSION;
      if (next.running || waits) return { claimed: null, reason: 'busy' };
      if (next.role === null || next.role === 'viewer') return { claimed: null, reason: 'unauthorized' };
      if (next.checkpoint_status === null && next.queue_id === null) return { claimed: null, reason: 'empty' };
      const claimed = next.checkpoint_id
        ? await claimResume(tx, request, session, next, next.checkpoint_id)
        : await claimItem(tx, request, session, next, next.queue_id ?? '');
      await refreshSession(tx, session.id);
      return { claimed };
    });
  } catch (error) {
    if (isUniqueViolation(error, 'executions_one_running')) return { claimed: null, reason: 'busy' };
    throw error;
  }
}

/** The member's row stays locked: who takes the role away meanwhile finds what was started, and stops it. */
async function candidate(tx: Query, session: SessionRow): Promise<Candidate | undefined> {
  const [row] = await tx.query<Candidate>(
    `with member as (
       select role from members where project_id = $4 and user_id = $3 for share
     )
     select a.config, a.deleted_at is not null as agent_deleted, (select role from member) as role,
       exists (select from executions where session_id = $1 and status = 'running') as running,
       c.id as checkpoint_id, c.status as checkpoint_status, c.execution_id as checkpoint_execution, c.run_id,
       c.version as checkpoint_version,
       case when c.status = 'answered' then c.state end as checkpoint_state, ce.config as checkpoint_config,
       q.id as queue_id, q.message_id, q.text, q.attachments
     from agents a
     left join checkpoints c on c.session_id = $1 and c.status in ('open', 'answered')
     left join executions ce on ce.id = c.execution_id
     left join lateral (
       select i.id, i.message_id, t.text, ${attachmentsOf('i.message_id')} as attachments
       from queue_items i join messages t on t.id = i.message_id
       where i.session_id = $1 order by i.position limit 1
     ) q on true
     where a.id = $2`,
    [session.id, session.agent_id, session.user_id, session.project_id],
  );
  return row;
}

function refOf(session: SessionRow): SessionRef {
  return {
    sessionId: session.id,
    projectId: session.project_id,
    agentId: session.agent_id,
    userId: session.user_id,
  };
}

async function claimItem(
  tx: Query,
  { executionId, workerId, leaseMs }: ClaimRequest,
  session: SessionRow,
  next: Candidate,
  queueId: string,
): Promise<Claimed> {
  const runId = newId();
  const segmentId = newId();
  const number = session.execution_count + 1;
  await tx.query(
    `with numbered as (
       update sessions set execution_count = $4 where id = $2
     ), execution as (
       insert into executions (id, session_id, run_id, number, status, worker_id, lease_expires_at, queue_id, config, steerable, started_at)
       values ($1, $2, $3, $4, 'running', $5, clock_timestamp() + $6 * interval '1 ms', $7, $8, $11, clock_timestamp())
     ), message as (
       update messages set execution_id = $1, first_execution_id = $1, place_execution = $4, place = 0 where id = $9
     ), segment as (
       insert into messages (id, session_id, role, execution_id, first_execution_id, place_execution, place)
       values ($10, $2, 'assistant', $1, $1, $4, 1)
     ), started as (
       delete from queue_items where id = $7
     )
     insert into queue_outcomes (queue_id, session_id, message_id, outcome, execution_id)
     values ($7, $2, $9, 'started', $1)`,
    [
      executionId,
      session.id,
      runId,
      number,
      workerId,
      leaseMs,
      queueId,
      JSON.stringify(next.config),
      next.message_id,
      segmentId,
      next.config.limits.maxSteps > 1,
    ],
  );
  const message = { id: next.message_id, text: next.text, attachments: next.attachments };
  const common = { session: refOf(session), executionId, runId, number, segmentId, config: next.config };
  return { ...common, place: 1, queueId, message, checkpoint: null };
}

/**
 * A continuation keeps the configuration that its checkpoint was made under, and goes on in its run's last segment. The
 * calls that are not through are its own from now on. Those that waited keep their state until they begin, one after the
 * other: after a worker's death the record says which may have run and which have not.
 * A checkpoint of a newer release is left to that release's workers.
 */
async function claimResume(
  tx: Query,
  { executionId, workerId, leaseMs }: ClaimRequest,
  session: SessionRow,
  next: Candidate,
  checkpointId: string,
): Promise<Claimed> {
  const number = session.execution_count + 1;
  await tx.query(
    `with numbered as (
       update sessions set execution_count = $4 where id = $2
     ), resumed as (
       update checkpoints set status = 'resumed', continuation_id = $1, state = null where id = $7
     ), calls as (
       update tool_calls t set execution_id = $1, state = case when exists (
           select from suspensions s where s.tool_call_id = t.id)
         then t.state else 'running' end
       where execution_id = $8 and state in ('running', 'suspended')
     )
     insert into executions (id, session_id, run_id, number, status, worker_id, lease_expires_at, checkpoint_id, config, steps, steerable, started_at)
     select $1, $2, $3, $4, 'running', $5, clock_timestamp() + $6 * interval '1 ms', $7, config, steps,
       steps + 1 < (config->'limits'->>'maxSteps')::integer, clock_timestamp()
     from executions where id = $8`,
    [executionId, session.id, next.run_id, number, workerId, leaseMs, checkpointId, next.checkpoint_execution],
  );
  const [segment] = await tx.query<{ id: string; place: number }>(
    `update messages set execution_id = $2 where id = (
       select id from messages where session_id = $1 and execution_id = $3 and role = 'assistant'
       order by place_execution desc, place desc limit 1)
     returning id, place`,
    [session.id, executionId, next.checkpoint_execution],
  );
  if (!segment) throw new Error('a suspended run has no segment');
  const common = { session: refOf(session), executionId, runId: next.run_id, number, segmentId: segment.id };
  const state = { version: next.checkpoint_version, state: next.checkpoint_state };
  const checkpoint = { checkpointId, executionId: next.checkpoint_execution, ...state };
  return { ...common, place: 0, config: next.checkpoint_config, queueId: null, message: null, checkpoint };
}
