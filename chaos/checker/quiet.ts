import type { History } from '../history.js';
import { now, sleep } from '../stage/clock.js';
import { LEASE_MS, type Stage } from '../stage/stage.js';
import type { ChatSession } from '../workload/chats.js';
import { ask } from '../workload/http.js';

/** From so long after the last repair on nothing may be stuck. */
const STUCK_MS = 15_000;
/** A ready session is served within 2 s (contract, section 9.3), and a machine may be busy. */
const UNSERVED_MS = 5_000;
/** What a queue of many messages may take to run through. */
const DRAIN_MS = 90_000;

interface Unrest {
  /** Executions that run though their lease is long over. */
  readonly dead: readonly string[];
  /** Sessions that could start something and have not for long. */
  readonly unserved: readonly string[];
  /** Everything that is not through: running, ready, pending. */
  readonly left: number;
  /** Calls that wait for an answer. */
  readonly open: readonly { readonly sessionId: string; readonly runId: string; readonly toolCallId: string }[];
}

/**
 * After the faults: answers what waits for a person and waits until everything has run. What is stuck 15 s after the last
 * repair is a violation.
 */
export async function becomeQuiet(
  stage: Stage,
  history: History,
  sessions: ReadonlyMap<string, ChatSession>,
): Promise<void> {
  const ids = [...sessions.keys()];
  const began = now();
  for (;;) {
    const unrest = await look(stage, ids);
    if (unrest.left === 0 && unrest.open.length === 0) return;
    if (now() - began > STUCK_MS && isStuck(history, unrest)) return;
    if (now() - began > DRAIN_MS) {
      history.violation('nothing is stuck', `${unrest.left} are left ${DRAIN_MS} ms after the faults`);
      return;
    }
    for (const { sessionId, runId, toolCallId } of unrest.open)
      await approve(stage, history, sessions.get(sessionId), runId, toolCallId);
    await sleep(300);
  }
}

function isStuck(history: History, { dead, unserved }: Unrest): boolean {
  for (const id of dead) history.violation('nothing is stuck', `execution ${id} runs on a lease that is over`);
  for (const id of unserved) history.violation('nothing is stuck', `session ${id} is ready, and nobody serves it`);
  return dead.length + unserved.length > 0;
}

async function look(stage: Stage, ids: readonly string[]): Promise<Unrest> {
  const [row] = await stage.query<Unrest>(
    `select
       (select coalesce(json_agg(id), '[]') from executions where session_id = any($1) and status = 'running'
          and lease_expires_at < clock_timestamp() - $2 * interval '1 ms') as dead,
       (select coalesce(json_agg(id), '[]') from sessions where id = any($1)
          and ready_at < clock_timestamp() - $3 * interval '1 ms') as unserved,
       ((select count(*) from executions where session_id = any($1) and status = 'running')
         + (select count(*) from sessions where id = any($1) and ready_at is not null)
         + (select count(*) from queue_items where session_id = any($1)))::integer as left,
       (select coalesce(json_agg(json_build_object('sessionId', c.session_id, 'runId', c.run_id, 'toolCallId', s.tool_call_id)), '[]')
          from checkpoints c join suspensions s on s.checkpoint_id = c.id
          where c.session_id = any($1) and c.status = 'open' and s.answered_at is null) as open`,
    [ids, 2 * LEASE_MS, UNSERVED_MS],
  );
  if (!row) throw new Error('Postgres answered nothing');
  return row;
}

async function approve(
  stage: Stage,
  history: History,
  session: ChatSession | undefined,
  runId: string,
  toolCallId: string,
): Promise<void> {
  const main = stage.mains.find(({ baseUrl }) => baseUrl !== null);
  if (!session || !main?.baseUrl) return;
  const from = now();
  const body = { runId, toolCallId, resumeData: { approved: true } };
  const { path, token } = session.seat;
  const { outcome } = await ask({ method: 'POST', url: `${main.baseUrl}${path}/resume`, token, body });
  const action = { kind: 'answer' as const, toolCallId, approved: true, key: null };
  history.operations.push({ client: -1, sessionId: session.id, main: main.name, from, to: now(), action, outcome });
}
