import type { Query } from '../db/database.js';
import { hashOf, newSecret } from './secret.js';

/**
 * Makes the code of a one-time link, valid for 10 minutes (contract, section 2); null where there is no such user.
 * Codes of that user that have run out are removed on the way, so that the table does not grow.
 */
export async function createSignInLink(db: Query, userId: string): Promise<{ code: string; expiresAt: string } | null> {
  const code = newSecret('lk');
  await db.query('delete from sign_in_links where user_id = $1 and expires_at < now()', [userId]);
  const [row] = await db.query<{ expires_at: Date }>(
    `insert into sign_in_links (hash, user_id, expires_at)
     select $1, id, now() + interval '10 minutes' from users where id = $2 returning expires_at`,
    [hashOf(code), userId],
  );
  return row ? { code, expiresAt: row.expires_at.toISOString() } : null;
}
