import type { Database } from '../db/database.js';
import { cancelExecutionsOf } from './cancel-executions.js';
import { clearWaiting, type Removed } from './delete-session.js';
import type { MarkedExecution, SessionRef } from './refs.js';
import { refreshSession } from './session-status.js';

export interface DeletedAgent {
  /** Whose workers must hear of it. */
  marked: MarkedExecution[];
  /** Sessions whose streams wait for what was removed. */
  removed: (Removed & { session: SessionRef })[];
}

/**
 * Deletes an agent (contract, section 2): its routes answer 404 at once, its running executions are cancelled, its
 * checkpoints closed and its pending items removed. Sessions stay as marks.
 * @returns null where there is no such agent
 */
export async function deleteAgent(db: Database, projectId: string, agentId: string): Promise<DeletedAgent | null> {
  const marked = await db.transaction(async (tx) => {
    // for update: it waits for sessions that are being made, whose foreign key holds the agent's row.
    const [agent] = await tx.query(
      'select id from agents where id = $1 and project_id = $2 and deleted_at is null for update',
      [agentId, projectId],
    );
    if (!agent) return null;
    await tx.query('update agents set deleted_at = clock_timestamp() where id = $1', [agentId]);
    return [];
  });
  if (marked === null) return null;
  return finishDeletedAgent(db, agentId);
}

/**
 * The rest of an agent's deletion, session by session. Safe to repeat: a worker's housekeeping does, in case a main died
 * between the two.
 */
export async function finishDeletedAgent(db: Database, agentId: string): Promise<DeletedAgent> {
  const marked = await db.transaction((tx) => cancelExecutionsOf(tx, { agentId }));
  const sessions = await db.query<SessionRef>(
    `select id as "sessionId", project_id as "projectId", agent_id as "agentId", user_id as "userId" from sessions
     where agent_id = $1 and status <> 'idle' and deleted_at is null`,
    [agentId],
  );
  const removed: DeletedAgent['removed'] = [];
  for (const session of sessions) removed.push({ ...(await clearSession(db, session.sessionId)), session });
  // Once more: what a claim had read before the deletion has committed by now.
  const late = await db.transaction((tx) => cancelExecutionsOf(tx, { agentId }));
  return { marked: [...marked, ...late], removed };
}

async function clearSession(db: Database, sessionId: string): Promise<Removed> {
  return db.session(sessionId, async (tx) => {
    const removed = await clearWaiting(tx, sessionId);
    await refreshSession(tx, sessionId);
    return removed;
  });
}

/** Agents that are deleted but still hold something that waits or runs. */
export async function unfinishedDeletions(db: Database): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `select distinct a.id from agents a join sessions s on s.agent_id = a.id
     where a.deleted_at > now() - interval '1 day' and s.status <> 'idle' and s.deleted_at is null limit 100`,
  );
  return rows.map((row) => row.id);
}
