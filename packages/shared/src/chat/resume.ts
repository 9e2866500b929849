import type { ResumeAccepted, ResumeRequest } from '../contract/chat.js';
import type { Usage } from '../contract/events.js';
import { ProblemError } from '../contract/problems.js';
import type { Database, Query } from '../db/database.js';
import { claimKey, type IdempotencyKey, keepAnswer } from './idempotency.js';
import type { SessionRef } from './refs.js';
import { refreshSession } from './session-status.js';

/** An accepted answer, and what its stream needs: the suspended execution, and the checkpoint that it waits for. */
export interface AcceptedAnswer extends ResumeAccepted {
  executionId: string;
  /** What the suspended execution has cost, and the number of its `done`. */
  usage: Usage | null;
  finalN: number;
  checkpointId: string;
  /** True where an earlier request with the same key was accepted: this one has added nothing. */
  repeated: boolean;
}

/** What a person answered. */
export type Answer = ResumeRequest['resumeData'];

/** The session of a run, where it is the user's own at that agent; null otherwise. */
export async function findRun(db: Query, owner: Omit<SessionRef, 'sessionId'>, runId: string): Promise<string | null> {
  const [row] = await db.query<{ id: string }>(
    `select s.id from executions e join sessions s on s.id = e.session_id
     where e.run_id = $1 and s.project_id = $2 and s.agent_id = $3 and s.user_id = $4 and s.deleted_at is null limit 1`,
    [runId, owner.projectId, owner.agentId, owner.userId],
  );
  return row?.id ?? null;
}

/**
 * Accepts an answer to a call that waits (contract, section 5): one transaction under the session lock, each call once. With
 * the last one the run can go on, before any pending message.
 * @throws ProblemError `not_found` (no such call in that run), `invalid_request` (the data of another kind),
 *   `suspension_resolved` (answered, cancelled or gone on), `idempotency_mismatch`
 */
export async function acceptAnswer(
  db: Database,
  session: SessionRef,
  { runId, toolCallId, resumeData }: ResumeRequest,
  idempotency: IdempotencyKey | null,
): Promise<AcceptedAnswer> {
  return db.session(session.sessionId, async (tx, locked) => {
    if (!locked) throw notFound();
    if (idempotency) {
      const first = await claimKey<Omit<AcceptedAnswer, 'repeated'>>(tx, session.userId, idempotency);
      if (first) return { ...first, repeated: true };
    }
    const call = await findSuspension(tx, session.sessionId, runId, toolCallId);
    if (!call) throw notFound();
    checkKind(call.kind, resumeData);
    if (call.answered || call.status !== 'open')
      throw new ProblemError('suspension_resolved', 'This call no longer waits for an answer.');
    const remaining = await answer(tx, call.checkpoint_id, toolCallId, resumeData);
    await refreshSession(tx, session.sessionId);
    const accepted = {
      sessionId: session.sessionId,
      runId,
      toolCallId,
      remaining,
      executionId: call.execution_id,
      usage: call.input === null ? null : { inputTokens: call.input, outputTokens: call.output ?? 0 },
      finalN: call.final_n,
      checkpointId: call.checkpoint_id,
    };
    if (idempotency) await keepAnswer(tx, session.userId, idempotency, accepted);
    return { ...accepted, repeated: false };
  });
}

function notFound(): ProblemError {
  return new ProblemError('not_found', 'There is nothing here, or it is not yours.');
}

async function findSuspension(tx: Query, sessionId: string, runId: string, toolCallId: string) {
  const [row] = await tx.query<{
    kind: 'approval' | 'question';
    answered: boolean;
    status: string;
    checkpoint_id: string;
    execution_id: string;
    final_n: number;
    input: number | null;
    output: number | null;
  }>(
    `select s.kind, s.answered_at is not null as answered, c.status, c.id as checkpoint_id, c.execution_id,
       e.final_n, e.input_tokens as input, e.output_tokens as output
     from suspensions s join checkpoints c on c.id = s.checkpoint_id join executions e on e.id = c.execution_id
     where s.tool_call_id = $3 and c.run_id = $2 and c.session_id = $1`,
    [sessionId, runId, toolCallId],
  );
  return row;
}

function checkKind(kind: 'approval' | 'question', data: Answer): void {
  const name = kind === 'approval' ? 'approved' : 'answer';
  if (name in data) return;
  const errors = [{ pointer: `/resumeData/${name}`, message: `is required for a call of kind ${kind}` }];
  throw new ProblemError('invalid_request', 'The body is not valid.', { errors });
}

async function answer(tx: Query, checkpointId: string, toolCallId: string, data: Answer): Promise<number> {
  await tx.query('update suspensions set resume_data = $2, answered_at = clock_timestamp() where tool_call_id = $1', [
    toolCallId,
    JSON.stringify(data),
  ]);
  const [row] = await tx.query<{ remaining: number }>(
    'select count(*) as remaining from suspensions where checkpoint_id = $1 and answered_at is null',
    [checkpointId],
  );
  const remaining = row?.remaining ?? 0;
  if (remaining === 0)
    await tx.query("update checkpoints set status = 'answered', answered_at = clock_timestamp() where id = $1", [
      checkpointId,
    ]);
  return remaining;
}

/** The answers to a checkpoint's calls, by call. */
export async function readAnswers(db: Query, checkpointId: string): Promise<Map<string, Answer>> {
  const rows = await db.query<{ id: string; data: Answer }>(
    'select tool_call_id as id, resume_data as data from suspensions where checkpoint_id = $1 and answered_at is not null',
    [checkpointId],
  );
  return new Map(rows.map((row) => [row.id, row.data]));
}
