import type { Stage } from '../stage/stage.js';

export interface ExecutionRow {
  id: string;
  sessionId: string;
  runId: string;
  number: number;
  status: string;
  workerId: string;
  startedAt: number;
  finishedAt: number | null;
  cancelRequested: boolean;
  errorCode: string | null;
}

export interface MessageRow {
  id: string;
  sessionId: string;
  role: 'user' | 'assistant';
  text: string;
  /** The execution that it first belonged to; null: it is pending. */
  executionId: string | null;
  /** The number of that execution. */
  number: number | null;
  place: number | null;
}

export interface OutcomeRow {
  queueId: string;
  sessionId: string;
  messageId: string;
  outcome: 'started' | 'steered' | 'removed';
  executionId: string | null;
}

export interface PendingRow {
  queueId: string;
  sessionId: string;
  messageId: string;
}

export interface CallRow {
  id: string;
  sessionId: string;
  runId: string;
  state: string;
}

/** What the database says of a round's sessions once all is quiet. Times are ms since 1970. */
export interface FinalState {
  readonly deleted: ReadonlySet<string>;
  /** In the order of the transcript within each session. */
  readonly messages: readonly MessageRow[];
  readonly executions: readonly ExecutionRow[];
  readonly outcomes: readonly OutcomeRow[];
  readonly pending: readonly PendingRow[];
  readonly calls: readonly CallRow[];
}

/** Reads the final state of these sessions. */
export async function readFinalState(query: Stage['query'], sessionIds: readonly string[]): Promise<FinalState> {
  const of = <Row extends object>(sql: string) => query<Row>(sql, [sessionIds]);
  const [deleted, messages, executions, outcomes, pending, calls] = await Promise.all([
    of<{ id: string }>('select id from sessions where id = any($1) and deleted_at is not null'),
    of<MessageRow>(
      `select id, session_id as "sessionId", role, text, first_execution_id as "executionId",
         place_execution as number, place from messages where session_id = any($1)
       order by session_id, place_execution, place`,
    ),
    of<ExecutionRow>(
      `select id, session_id as "sessionId", run_id as "runId", number, status, worker_id as "workerId",
         (extract(epoch from started_at) * 1000)::float8 as "startedAt",
         (extract(epoch from finished_at) * 1000)::float8 as "finishedAt",
         cancel_requested_at is not null as "cancelRequested", error_code as "errorCode"
       from executions where session_id = any($1) order by session_id, number`,
    ),
    of<OutcomeRow>(
      `select queue_id as "queueId", session_id as "sessionId", message_id as "messageId", outcome,
         execution_id as "executionId" from queue_outcomes where session_id = any($1)`,
    ),
    of<PendingRow>(
      `select id as "queueId", session_id as "sessionId", message_id as "messageId" from queue_items
       where session_id = any($1) order by session_id, position`,
    ),
    of<CallRow>(
      `select id, session_id as "sessionId", run_id as "runId", state from tool_calls where session_id = any($1)`,
    ),
  ]);
  return { deleted: new Set(deleted.map(({ id }) => id)), messages, executions, outcomes, pending, calls };
}
