import type { Query } from '../db/database.js';

/** By what a stream was opened, and in which project; null: it shows nothing of a project. */
export interface StreamAccess {
  userId: string;
  tokenId: string | null;
  /** The hash of the browser's cookie. */
  webSession: Buffer | null;
  projectId: string | null;
}

/**
 * Whether each of these may still be read: its token or sign-in is valid, and its user a member of the project (contract,
 * section 2). One statement for all of them.
 */
export async function stillAllowed(db: Query, streams: StreamAccess[]): Promise<boolean[]> {
  const rows = await db.query<{ allowed: boolean }>(
    `select (s.token_id is null or exists (select from tokens t where t.id = s.token_id and t.user_id = s.user_id))
       and (s.web_session is null or exists (
         select from web_sessions w where w.hash = s.web_session and w.expires_at > now()))
       and (s.project_id is null or exists (
         select from members m where m.project_id = s.project_id and m.user_id = s.user_id)) as allowed
     from unnest($1::uuid[], $2::uuid[], $3::bytea[], $4::uuid[])
       with ordinality as s (user_id, token_id, web_session, project_id, position)
     order by s.position`,
    [
      streams.map((stream) => stream.userId),
      streams.map((stream) => stream.tokenId),
      streams.map((stream) => stream.webSession),
      streams.map((stream) => stream.projectId),
    ],
  );
  return rows.map((row) => row.allowed);
}
