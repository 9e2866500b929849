import type { MessageView } from '../contract/chat.js';
import type { EventMessage, ExecutionStatus, Usage } from '../contract/events.js';
import type { ExecutionError } from '../contract/execution.js';
import type { Database, Query } from '../db/database.js';
import { MESSAGE } from './attachments.js';
import type { OpenBlock } from './record.js';
import { readExecutionMessages } from './transcript.js';

/** How far an execution is, as a main looks at it every two seconds. */
export interface ExecutionMark {
  executionId: string;
  status: ExecutionStatus;
  recordedN: number;
  finalN: number | null;
}

/** Where executions stand, of those in `ids` that still exist. */
export async function readMarks(db: Query, ids: string[]): Promise<ExecutionMark[]> {
  return db.query(
    `select id as "executionId", status, recorded_n as "recordedN", final_n as "finalN" from executions
     where id = any($1)`,
    [ids],
  );
}

/** What became of the queue items and answered checkpoints in `ids`, of those of which something became. */
export async function readOutcomes(
  db: Query,
  ids: string[],
): Promise<{ of: string; outcome: 'started' | 'steered' | 'removed' | 'cancelled'; executionId: string | null }[]> {
  return db.query(
    `select queue_id as of, outcome, execution_id as "executionId" from queue_outcomes where queue_id = any($1)
     union all
     select id, case status when 'resumed' then 'started' else 'cancelled' end,
       case status when 'resumed' then continuation_id else execution_id end
     from checkpoints where id = any($1) and status in ('resumed', 'cancelled')`,
    [ids],
  );
}

/** A message that was steered in: what its own waiting stream is told. Null where it was not, or is gone. */
export async function readSteered(
  db: Query,
  queueId: string,
): Promise<{ executionId: string; message: EventMessage; n: number } | null> {
  const [row] = await db.query<{ executionId: string; message: EventMessage; n: number }>(
    `select o.execution_id as "executionId", m.steered_n as n,
       ${MESSAGE} as message
     from queue_outcomes o join messages m on m.id = o.message_id where o.queue_id = $1 and o.outcome = 'steered'`,
    [queueId],
  );
  return row ?? null;
}

/** A call that waits for a person, as its event told. */
export interface RecordedSuspension {
  n: number;
  toolCallId: string;
  toolName: string;
  input: unknown;
  truncated: boolean;
  kind: 'approval' | 'question';
}

/** An execution as the record knows it at one moment: enough to derive every event that reports a commit. */
export interface RecordedExecution {
  executionId: string;
  runId: string;
  sessionId: string;
  status: ExecutionStatus;
  recordedN: number;
  finalN: number | null;
  openBlocks: OpenBlock[];
  usage: Usage | null;
  error: ExecutionError | null;
  /** The message that it started with; null for a continuation. */
  message: EventMessage | null;
  steered: { queueId: string; message: EventMessage; n: number }[];
  suspended: RecordedSuspension[];
  messages: MessageView[];
}

/** Reads all of that in one consistent view; null where the execution is gone. */
export async function readRecorded(db: Database, executionId: string): Promise<RecordedExecution | null> {
  return db.snapshot(async (tx) => {
    const [row] = await tx.query<Row>(SELECT_EXECUTION, [executionId]);
    if (!row) return null;
    const suspended = row.status === 'running' ? [] : await readSuspended(tx, executionId);
    return {
      executionId,
      runId: row.run_id,
      sessionId: row.session_id,
      status: row.status,
      recordedN: row.recorded_n,
      finalN: row.final_n,
      openBlocks: row.open_blocks,
      usage: row.input_tokens === null ? null : { inputTokens: row.input_tokens, outputTokens: row.output_tokens ?? 0 },
      error: row.error_code === null ? null : { code: row.error_code, message: row.error_message ?? '' },
      message: row.message,
      steered: row.steered,
      suspended,
      messages: await readExecutionMessages(tx, executionId),
    };
  });
}

interface Row {
  run_id: string;
  session_id: string;
  status: ExecutionStatus;
  recorded_n: number;
  final_n: number | null;
  open_blocks: OpenBlock[];
  input_tokens: number | null;
  output_tokens: number | null;
  error_code: ExecutionError['code'] | null;
  error_message: string | null;
  message: EventMessage | null;
  steered: RecordedExecution['steered'];
}

const SELECT_EXECUTION = `
  select e.run_id, e.session_id, e.status, e.recorded_n, e.final_n, e.open_blocks, e.input_tokens, e.output_tokens,
    e.error_code, e.error_message,
    (select ${MESSAGE}
     from messages m where m.first_execution_id = e.id and m.role = 'user' and m.steered_n is null) as message,
    (select coalesce(json_agg(json_build_object('queueId', o.queue_id, 'n', m.steered_n, 'message',
        ${MESSAGE}) order by m.steered_n), '[]'::json)
     from messages m join queue_outcomes o on o.message_id = m.id and o.session_id = e.session_id
     where m.first_execution_id = e.id and m.steered_n is not null) as steered
  from executions e where e.id = $1`;

async function readSuspended(tx: Query, executionId: string): Promise<RecordedSuspension[]> {
  const rows = await tx.query<
    Omit<RecordedSuspension, 'input' | 'truncated'> & { input: string; preview: string | null }
  >(
    `select s.n, s.tool_call_id as "toolCallId", t.tool_name as "toolName", s.kind, t.input_preview as preview,
       case when t.input_preview is null then t.input else 'null' end as input
     from suspensions s join checkpoints c on c.id = s.checkpoint_id join tool_calls t on t.id = s.tool_call_id
     where c.execution_id = $1 order by s.n`,
    [executionId],
  );
  return rows.map(({ input, preview, ...row }) => ({
    ...row,
    input: preview ?? (JSON.parse(input) as unknown),
    truncated: preview !== null,
  }));
}
