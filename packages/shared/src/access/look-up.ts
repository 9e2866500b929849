import type { Role } from '../contract/access.js';
import type { Query } from '../db/database.js';

/** Who makes a request. A user came with a token or with a browser's sign-in; the instance admin has no user. */
export type Principal =
  | { kind: 'user'; userId: string; tokenId: string | null; webSession: Buffer | null }
  | { kind: 'admin'; adminHash: Buffer; webSession: Buffer };

/** What a request shows: the hash of its token, or of its cookie. */
export type Shown = { tokenHash: Buffer } | { webSessionHash: Buffer };

/** What a request is about. Null: it names none, or something that is no id, which is nobody's. */
export type Subject = { projectId: string | null; agentId: string | null };

export interface Found {
  principal: Principal;
  /** The user's role in the project; null: no member, or no such project. */
  role: Role | null;
  /** The agent, where it is in that project and not deleted. Without its configuration: no request needs it to be checked. */
  agent: { id: string } | null;
  /** True where a browser's sign-in has used up a day of its time and is to be prolonged. */
  prolong: boolean;
}

interface Row {
  user_id: string | null;
  token_id: string | null;
  admin_hash: Buffer | null;
  prolong: boolean;
  role: Role | null;
  agent_id: string | null;
}

const SUBJECT = `
  left join members m on m.project_id = $2 and m.user_id = w.user_id
  left join agents a on a.id = $3 and a.project_id = $2 and a.deleted_at is null`;
const COLUMNS = 'm.role, a.id as agent_id';

const BY_TOKEN = `
  select w.user_id, w.id as token_id, null::bytea as admin_hash, false as prolong, ${COLUMNS}
  from tokens w ${SUBJECT} where w.hash = $1`;
const BY_WEB_SESSION = `
  select w.user_id, w.token_id, w.admin_hash, w.expires_at < now() + interval '29 days' as prolong, ${COLUMNS}
  from web_sessions w ${SUBJECT} where w.hash = $1 and w.expires_at > now()`;

/**
 * The hot question of every request, in one statement: who is this, what is their role in that project, and is that agent
 * there? Null: nobody (401). For the instance admin the caller compares `adminHash` with the token of now.
 * The ids must be UUIDs in form.
 */
export async function lookUp(db: Query, shown: Shown, subject: Subject): Promise<Found | null> {
  const byToken = 'tokenHash' in shown;
  const hash = byToken ? shown.tokenHash : shown.webSessionHash;
  const [row] = await db.query<Row>(byToken ? BY_TOKEN : BY_WEB_SESSION, [hash, subject.projectId, subject.agentId]);
  if (row === undefined) return null;
  return {
    principal: principalOf(row, byToken ? null : hash),
    role: row.role,
    agent: row.agent_id === null ? null : { id: row.agent_id },
    prolong: row.prolong,
  };
}

function principalOf(row: Row, webSession: Buffer | null): Principal {
  if (row.user_id !== null) return { kind: 'user', userId: row.user_id, tokenId: row.token_id, webSession };
  if (row.admin_hash === null || webSession === null) throw new Error('a sign-in of neither a user nor the admin');
  return { kind: 'admin', adminHash: row.admin_hash, webSession };
}
