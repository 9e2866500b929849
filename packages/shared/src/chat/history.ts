import type { AttachmentView } from '../contract/chat.js';
import type { Query } from '../db/database.js';
import { attachmentsOf } from './attachments.js';

/** A tool call as the history of a session knows it. */
export interface HistoryCall {
  type: 'tool-call';
  callId: string;
  toolName: string;
  inputJson: string;
  state: 'running' | 'suspended' | 'done' | 'error' | 'denied' | 'cancelled';
  outputJson: string | null;
  error: string | null;
  /** True for a call that still waited for a person when its turn was stopped: it has surely not run. */
  neverRan: boolean;
  providerCallId: string | null;
  providerKey: string | null;
}

/** What a session's executions said and did, in order, from which a model's context is made. Reasoning is not in it. */
export type HistoryItem =
  | { type: 'user'; text: string; attachments: AttachmentView[] }
  | { type: 'step' }
  | { type: 'text'; block: string; text: string }
  | HistoryCall;

/**
 * Everything of a session up to and without the output of execution `number`, the user messages of that execution
 * included. The cost is that of reading the transcript; only a model request needs it.
 */
export async function readHistory(db: Query, sessionId: string, number: number): Promise<HistoryItem[]> {
  return db
    .query<{ item: HistoryItem }>(
      `select json_build_object('type', 'user', 'text', m.text, 'attachments', ${attachmentsOf('m.id')}) as item,
       m.place_execution, m.place, 0 as execution_number, 0::bigint as n
     from messages m where m.session_id = $1 and m.role = 'user' and m.place_execution <= $2
     union all
     select case e.kind
         when 'step' then json_build_object('type', 'step')
         when 'text' then json_build_object('type', 'text', 'block', e.block, 'text', e.text)
         else json_build_object('type', 'tool-call', 'callId', t.id, 'toolName', t.tool_name, 'inputJson', t.input,
           'state', t.state, 'outputJson', t.output, 'error', t.error, 'neverRan', exists (
             select from suspensions s join checkpoints c on c.id = s.checkpoint_id
             where s.tool_call_id = t.id and c.status = 'cancelled'), 'providerCallId', t.provider_call_id,
           'providerKey', t.provider_key) end,
       m.place_execution, m.place, e.execution_number, e.n
     from messages m join entries e on e.message_id = m.id left join tool_calls t on t.id = e.tool_call_id
     where m.session_id = $1 and m.role = 'assistant' and m.place_execution < $2 and e.kind in ('step', 'text', 'tool-call')
     order by 2, 3, 4, 5`,
      [sessionId, number],
    )
    .then((rows) => rows.map((row) => row.item));
}
