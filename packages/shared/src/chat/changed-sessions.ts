import type { Query } from '../db/database.js';

export interface ChangedSession {
  userId: string;
  projectId: string;
  agentId: string;
  threadId: string;
  /** Its newest execution; null where nothing was executed yet. */
  executionId: string | null;
}

/** The sessions of these users that changed since `since`, or that run now. */
export async function changedSessions(db: Query, userIds: string[], since: Date): Promise<ChangedSession[]> {
  return db.query(
    `select s.user_id as "userId", s.project_id as "projectId", s.agent_id as "agentId", s.id as "threadId",
       (select e.id from executions e where e.session_id = s.id order by e.number desc limit 1) as "executionId"
     from sessions s where s.user_id = any($1) and s.deleted_at is null
       and (s.updated_at >= $2 or s.status = 'running') order by s.updated_at desc limit 1000`,
    [userIds, since],
  );
}
