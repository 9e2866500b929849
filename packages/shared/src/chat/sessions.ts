import type { ExecutionView, SessionListItem, ToolCallView } from '../contract/chat.js';
import type { Query } from '../db/database.js';
import type { SessionRef } from './refs.js';

/** Whether a session with this id exists: mine, nobody's (free to become a session), or not mine to see. */
export async function findSession(db: Query, ref: SessionRef): Promise<'own' | 'free' | 'hidden'> {
  const [row] = await db.query<{ own: boolean }>(
    `select user_id = $2 and agent_id = $3 and project_id = $4 and deleted_at is null as own from sessions where id = $1`,
    [ref.sessionId, ref.userId, ref.agentId, ref.projectId],
  );
  if (!row) return 'free';
  return row.own ? 'own' : 'hidden';
}

/** The user's sessions of an agent, newest first; `before` is a session's id, whose place in that order is exceeded. */
export async function listSessions(
  db: Query,
  owner: { agentId: string; userId: string },
  page: { before: string | null; limit: number },
): Promise<SessionListItem[]> {
  const rows = await db.query<{ id: string; title: string; status: SessionListItem['status']; updated_at: Date }>(
    `select id, title, status, updated_at from sessions
     where agent_id = $1 and user_id = $2 and deleted_at is null
       and ($3::uuid is null or (updated_at, id) < (select updated_at, id from sessions where id = $3))
     order by updated_at desc, id desc limit $4`,
    [owner.agentId, owner.userId, page.before, page.limit],
  );
  return rows.map(({ updated_at, ...row }) => ({ ...row, updatedAt: updated_at.toISOString() }));
}

interface ExecutionRow {
  id: string;
  run_id: string;
  status: ExecutionView['status'];
  created_at: Date;
  started_at: Date | null;
  finished_at: Date | null;
  input_tokens: number | null;
  output_tokens: number | null;
  error_code: NonNullable<ExecutionView['error']>['code'] | null;
  error_message: string | null;
}

/** The executions of a session, in their order. */
export async function listExecutions(db: Query, sessionId: string): Promise<ExecutionView[]> {
  const rows = await db.query<ExecutionRow>(
    `select id, run_id, status, created_at, started_at, finished_at, input_tokens, output_tokens, error_code, error_message
     from executions where session_id = $1 order by number`,
    [sessionId],
  );
  return rows.map((row) => ({
    id: row.id,
    runId: row.run_id,
    status: row.status,
    createdAt: row.created_at.toISOString(),
    startedAt: row.started_at?.toISOString() ?? null,
    finishedAt: row.finished_at?.toISOString() ?? null,
    usage: row.input_tokens === null ? null : { inputTokens: row.input_tokens, outputTokens: row.output_tokens ?? 0 },
    error: row.error_code === null ? null : { code: row.error_code, message: row.error_message ?? '' },
  }));
}

/** Whether a session has this execution. */
export async function hasExecution(db: Query, sessionId: string, executionId: string): Promise<boolean> {
  const rows = await db.query('select id from executions where id = $1 and session_id = $2', [executionId, sessionId]);
  return rows.length > 0;
}

/** The whole of a tool call of an execution's run; null where there is none. */
export async function readToolCall(
  db: Query,
  sessionId: string,
  executionId: string,
  toolCallId: string,
): Promise<ToolCallView | null> {
  const [row] = await db.query<{ tool_name: string; input: string; output: string | null }>(
    `select t.tool_name, t.input, t.output from tool_calls t join executions e on e.run_id = t.run_id
     where t.id = $3 and e.id = $2 and e.session_id = $1 and t.session_id = $1`,
    [sessionId, executionId, toolCallId],
  );
  if (!row) return null;
  const output = row.output === null ? {} : { output: JSON.parse(row.output) as unknown };
  return { toolCallId, toolName: row.tool_name, input: JSON.parse(row.input) as unknown, ...output };
}
