import type { Usage } from '../contract/events.js';
import type { Query } from '../db/database.js';

/** One row of the timeline: what the record keeps of one or several events. `n` is the number of the first of them. */
export interface Entry {
  messageId: string;
  n: number;
  kind: 'step' | 'text' | 'reasoning' | 'tool-call' | 'child-text' | 'child-reasoning';
  /** The id of the text or reasoning that the row is a piece of; of a delegate's: `cut` where some of it is not kept. */
  block: string | null;
  toolCallId: string | null;
  text: string | null;
}

export interface NewToolCall {
  id: string;
  messageId: string;
  parentId: string | null;
  ordinal: number;
  toolName: string;
  inputJson: string;
  inputPreview: string | null;
  providerCallId: string | null;
  providerKey: string | null;
  state: ToolCallEnd['state'] | 'running' | 'suspended';
  outputJson: string | null;
  outputPreview: string | null;
  error: string | null;
}

/** How a recorded tool call ended. */
export interface ToolCallEnd {
  id: string;
  state: 'done' | 'error' | 'denied' | 'cancelled' | 'running' | 'suspended';
  outputJson: string | null;
  outputPreview: string | null;
  error: string | null;
}

/** What was under way after the last recorded event, as the event that announced it. */
export type OpenBlock =
  | { type: 'text-start' | 'reasoning-start'; id: string }
  | { type: 'tool-input-start'; toolCallId: string; toolName: string };

/** What is new since the last flush. */
export interface Batch {
  entries: Entry[];
  newCalls: NewToolCall[];
  endedCalls: ToolCallEnd[];
  /** The number of the last event that the record covers after this. */
  recordedN: number;
  openBlocks: OpenBlock[];
  steps: number;
  usage: Usage | null;
}

/** The fence of every write of a worker: this execution, this worker, running, and its lease not over. */
export interface Owner {
  executionId: string;
  executionNumber: number;
  sessionId: string;
  runId: string;
  workerId: string;
}

/**
 * Writes what is new of a running execution, in one statement whose cost depends on nothing but what is new. Writing the
 * same batch again, after a commit whose answer got lost, changes nothing.
 * @returns false where the execution is no longer this worker's ('moved on'): nothing was written, and the worker stops
 */
export async function recordBatch(db: Query, owner: Owner, batch: Batch): Promise<boolean> {
  const { entries, newCalls, endedCalls } = batch;
  const rows = await db.query(
    `with fence as (
       update executions set recorded_n = $3, open_blocks = $4, steps = $5, input_tokens = coalesce($6, input_tokens),
         output_tokens = coalesce($7, output_tokens)
       where id = $1 and worker_id = $2 and status = 'running' and lease_expires_at > clock_timestamp()
       returning id
     ), calls as (
       insert into tool_calls (id, session_id, run_id, execution_id, message_id, parent_id, ordinal, tool_name, input,
         input_preview, state, output, output_preview, error, provider_call_id, provider_key)
       select c.id, $15, $16, fence.id, c."messageId", c."parentId", c.ordinal, c."toolName", c."inputJson",
         c."inputPreview", c.state, c."outputJson", c."outputPreview", c.error, c."providerCallId", c."providerKey"
       from fence, json_to_recordset($17) as c (id text, "messageId" uuid, "parentId" text, ordinal bigint,
         "toolName" text, "inputJson" text, "inputPreview" text, state text, "outputJson" text, "outputPreview" text,
         error text, "providerCallId" text, "providerKey" text)
       on conflict (id) do nothing
     ), ends as (
       update tool_calls t set state = c.state, output = c."outputJson", output_preview = c."outputPreview",
         error = c.error, execution_id = fence.id
       from fence, json_to_recordset($18) as c (id text, state text, "outputJson" text, "outputPreview" text, error text)
       where t.id = c.id
     ), written as (
       insert into entries (message_id, execution_number, n, execution_id, kind, block, tool_call_id, text)
       select e.message_id, $8, e.n, fence.id, e.kind, e.block, e.tool_call_id, e.text
       from fence, unnest($9::uuid[], $10::bigint[], $11::text[], $12::text[], $13::text[], $14::text[])
         as e (message_id, n, kind, block, tool_call_id, text)
       on conflict do nothing
     )
     select id from fence`,
    [
      owner.executionId,
      owner.workerId,
      batch.recordedN,
      JSON.stringify(batch.openBlocks),
      batch.steps,
      batch.usage?.inputTokens ?? null,
      batch.usage?.outputTokens ?? null,
      owner.executionNumber,
      entries.map((entry) => entry.messageId),
      entries.map((entry) => entry.n),
      entries.map((entry) => entry.kind),
      entries.map((entry) => entry.block),
      entries.map((entry) => entry.toolCallId),
      entries.map((entry) => entry.text),
      owner.sessionId,
      owner.runId,
      JSON.stringify(newCalls),
      JSON.stringify(endedCalls),
    ],
  );
  return rows.length > 0;
}
