import type { Query } from '../db/database.js';
import { hashOf, isSecretOf, newSecret } from './secret.js';

/** How long a browser stays signed in after its last use, in seconds: 30 days (contract, section 2). */
export const WEB_SESSION_S = 30 * 24 * 3600;

/**
 * Signs a browser in with a user's token or with the code of a one-time link, and answers whom and the cookie's value; null
 * where neither is valid. A code is used up by the same statement that makes the session, so of two uses at once one wins.
 * A session that a token made ends with that token; one of a link has none.
 */
export async function signIn(db: Query, secret: string): Promise<{ userId: string; cookie: string } | null> {
  const cookie = newSecret('ws');
  const source = isSecretOf('lk', secret)
    ? `with used as (delete from sign_in_links where hash = $2 returning user_id, expires_at)
       insert into web_sessions (hash, user_id, token_id, expires_at)
       select $1, user_id, null, now() + make_interval(secs => $3) from used where expires_at > now()`
    : `insert into web_sessions (hash, user_id, token_id, expires_at)
       select $1, user_id, id, now() + make_interval(secs => $3) from tokens where hash = $2`;
  const [row] = await db.query<{ user_id: string }>(`${source} returning user_id`, [
    hashOf(cookie),
    hashOf(secret),
    WEB_SESSION_S,
  ]);
  return row ? { userId: row.user_id, cookie } : null;
}

/**
 * Signs the instance admin's browser in. The hash of ADMIN_TOKEN is kept with it: another ADMIN_TOKEN ends it.
 * Answers the cookie's value.
 */
export async function signInAdmin(db: Query, adminHash: Buffer): Promise<string> {
  const cookie = newSecret('ws');
  await db.query(
    'insert into web_sessions (hash, admin_hash, expires_at) values ($1, $2, now() + make_interval(secs => $3))',
    [hashOf(cookie), adminHash, WEB_SESSION_S],
  );
  return cookie;
}

/** Ends a browser's sign-in; with it go those of anybody that have run out, a hundred at a time. */
export async function signOut(db: Query, hash: Buffer): Promise<void> {
  await db.query(
    `delete from web_sessions where hash = $1
     or hash = any(array(select hash from web_sessions where expires_at < now() limit 100))`,
    [hash],
  );
}

/** Prolongs a sign-in to its full time. Called at most once a day for each, so that reading does not write. */
export async function prolongWebSession(db: Query, hash: Buffer): Promise<void> {
  await db.query('update web_sessions set expires_at = now() + make_interval(secs => $2) where hash = $1', [
    hash,
    WEB_SESSION_S,
  ]);
}
