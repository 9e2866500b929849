import type { MessagePart, MessageView, OpenSuspension, ToolCallPart, TranscriptView } from '../contract/chat.js';
import type { Database, Query } from '../db/database.js';
import { attachmentsOf } from './attachments.js';

/** A page of a transcript: messages before one, at most `limit`. */
export interface Page {
  before: string | null;
  limit: number;
}

interface MessageRow {
  id: string;
  role: 'user' | 'assistant';
  execution_id: string;
  created_at: Date;
  status: MessageView['status'];
  text: string;
  attachments: Extract<MessagePart, { type: 'file' }>[];
}

interface EntryRow {
  message_id: string;
  kind: 'step' | 'text' | 'reasoning' | 'tool-call' | 'child-text' | 'child-reasoning';
  block: string | null;
  tool_call_id: string | null;
  text: string | null;
}

interface CallRow {
  id: string;
  message_id: string;
  parent_id: string | null;
  tool_name: string;
  input: string | null;
  input_preview: string | null;
  state: ToolCallPart['state'];
  output: string | null;
  output_preview: string | null;
  error: string | null;
}

/**
 * A session's transcript (contract, section 5): messages oldest first in the order of executions and of places in
 * them, what waits for a person, and what runs. All of it as of one moment.
 */
export async function readTranscript(db: Database, sessionId: string, page: Page): Promise<TranscriptView> {
  return db.snapshot(async (tx) => {
    const messages = await readMessages(tx, await pageOf(tx, sessionId, page));
    const openSuspensions = await readOpenSuspensions(tx, sessionId);
    const [active] = await tx.query<{ id: string }>(
      "select id from executions where session_id = $1 and status = 'running'",
      [sessionId],
    );
    return { messages, openSuspensions, activeExecutionId: active?.id ?? null };
  });
}

/** The part of the transcript that belongs to one execution: what a `snapshot` holds. In the caller's transaction. */
export async function readExecutionMessages(tx: Query, executionId: string): Promise<MessageView[]> {
  const rows = await tx.query<MessageRow>(
    `${SELECT_MESSAGES} where m.execution_id = $1 or m.first_execution_id = $1 order by m.place_execution, m.place`,
    [executionId],
  );
  return readMessages(tx, rows);
}

const SELECT_MESSAGES = `
  select m.id, m.role, m.execution_id, m.created_at, m.text,
    case when m.role = 'assistant' then e.status end as status,
    case when m.role = 'user' then ${attachmentsOf('m.id')} else '[]'::json end as attachments
  from messages m join executions e on e.id = m.execution_id`;

async function pageOf(tx: Query, sessionId: string, { before, limit }: Page): Promise<MessageRow[]> {
  const rows = await tx.query<MessageRow>(
    `${SELECT_MESSAGES} where m.session_id = $1 and m.place is not null
       and ($3::uuid is null or (m.place_execution, m.place) < (
         select place_execution, place from messages where id = $3 and session_id = $1))
     order by m.place_execution desc, m.place desc limit $2`,
    [sessionId, limit, before],
  );
  return rows.reverse();
}

async function readMessages(tx: Query, rows: MessageRow[]): Promise<MessageView[]> {
  const ids = rows.filter((row) => row.role === 'assistant').map((row) => row.id);
  const entries = await tx.query<EntryRow>(
    `select message_id, kind, block, tool_call_id, text from entries where message_id = any($1) and kind <> 'step'
     order by message_id, execution_number, n`,
    [ids],
  );
  const calls = await tx.query<CallRow>(
    `select id, message_id, parent_id, tool_name, case when input_preview is null then input end as input,
       input_preview, state, case when output_preview is null then output end as output, output_preview, error
     from tool_calls where message_id = any($1) order by ordinal`,
    [ids],
  );
  const entriesOf = groupBy(entries, (entry) => entry.message_id);
  const callsOf = groupBy(calls, (call) => call.message_id);
  return rows.map((row) => toMessage(row, entriesOf.get(row.id) ?? [], callsOf.get(row.id) ?? []));
}

function toMessage(row: MessageRow, entries: EntryRow[], calls: CallRow[]): MessageView {
  const view = { id: row.id, role: row.role, executionId: row.execution_id, createdAt: row.created_at.toISOString() };
  if (row.role === 'user') return { ...view, content: userContent(row) };
  return { ...view, ...(row.status ? { status: row.status } : {}), content: assistantContent(entries, calls) };
}

function userContent({ text, attachments }: MessageRow): MessagePart[] {
  const files = attachments.map((file) => ({ ...file, type: 'file' as const }));
  return text === '' ? files : [{ type: 'text', text }, ...files];
}

/** Folds the timeline: pieces of one text become one part, a call stands where it was made. */
function assistantContent(entries: EntryRow[], calls: CallRow[]): MessagePart[] {
  const parts: MessagePart[] = [];
  const texts = new Map<string, { text: string }>();
  const parents = groupBy(calls, (call) => call.parent_id);
  for (const { kind, block, tool_call_id, text } of entries) {
    if (kind === 'text' || kind === 'reasoning') {
      const known = texts.get(`${kind} ${block}`);
      if (known) known.text += text ?? '';
      else {
        const part = { type: kind, text: text ?? '' };
        texts.set(`${kind} ${block}`, part);
        parts.push(part);
      }
    } else if (kind === 'tool-call') {
      const call = calls.find((candidate) => candidate.id === tool_call_id);
      if (call) parts.push(toPart(call, entries, parents));
    }
  }
  return parts;
}

function toPart(call: CallRow, entries: EntryRow[], parents: Map<string | null, CallRow[]>): ToolCallPart {
  const truncated = call.input_preview !== null || call.output_preview !== null;
  const children = parents.get(call.id) ?? [];
  const kept = entries.filter((entry) => entry.tool_call_id === call.id && entry.kind.startsWith('child-'));
  const said = (kind: string) =>
    kept
      .filter((entry) => entry.kind === kind)
      .map((entry) => entry.text ?? '')
      .join('');
  const hasChild = kept.length > 0 || children.length > 0;
  return {
    type: 'tool-call',
    toolCallId: call.id,
    toolName: call.tool_name,
    input: call.input_preview ?? JSON.parse(call.input ?? 'null'),
    state: call.state,
    ...outputOf(call),
    ...(call.error === null ? {} : { error: call.error }),
    ...(truncated ? { truncated } : {}),
    ...(hasChild
      ? {
          child: {
            text: said('child-text'),
            reasoning: said('child-reasoning'),
            toolCalls: children.map((child) => toPart(child, entries, parents)),
            truncated: kept.some((entry) => entry.block === 'cut'),
          },
        }
      : {}),
  };
}

function outputOf(call: CallRow): { output?: unknown } {
  if (call.output_preview !== null) return { output: call.output_preview };
  return call.output === null ? {} : { output: JSON.parse(call.output) };
}

/** The calls of a session that wait for a person, in the order of the calls. */
export async function readOpenSuspensions(tx: Query, sessionId: string): Promise<OpenSuspension[]> {
  const rows = await tx.query<{
    run_id: string;
    execution_id: string;
    tool_call_id: string;
    tool_name: string;
    kind: OpenSuspension['kind'];
    input: string | null;
    input_preview: string | null;
    parent_id: string | null;
  }>(
    `select c.run_id, c.execution_id, s.tool_call_id, t.tool_name, s.kind, t.parent_id, t.input_preview,
       case when t.input_preview is null then t.input end as input
     from checkpoints c join suspensions s on s.checkpoint_id = c.id join tool_calls t on t.id = s.tool_call_id
     where c.session_id = $1 and c.status = 'open' and s.answered_at is null order by s.ordinal`,
    [sessionId],
  );
  return rows.map((row) => ({
    runId: row.run_id,
    executionId: row.execution_id,
    toolCallId: row.tool_call_id,
    toolName: row.tool_name,
    kind: row.kind,
    input: row.input_preview ?? JSON.parse(row.input ?? 'null'),
    ...(row.parent_id === null ? {} : { parentToolCallId: row.parent_id }),
  }));
}

/** Map.groupBy, which Node 20 lacks. */
function groupBy<K, T>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}
