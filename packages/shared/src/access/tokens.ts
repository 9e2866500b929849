import type { CreatedToken, TokenList } from '../contract/access.js';
import { newId } from '../contract/ids.js';
import type { Query } from '../db/database.js';
import { hashOf, newSecret } from './secret.js';

/**
 * Makes a token for a user. The token is in this answer and nowhere else (contract, section 2).
 * Answers null where there is no such user.
 */
export async function createToken(db: Query, userId: string, name: string): Promise<CreatedToken | null> {
  const id = newId();
  const token = newSecret('tk');
  const rows = await db.query(
    'insert into tokens (id, user_id, name, hash) select $1, id, $3, $4 from users where id = $2 returning id',
    [id, userId, name, hashOf(token)],
  );
  return rows.length === 0 ? null : { id, token };
}

/** The tokens of a user, oldest first; null where there is no such user. */
export async function listTokens(db: Query, userId: string): Promise<TokenList['tokens'] | null> {
  const rows = await db.query<{ id: string | null; name: string; created_at: Date }>(
    `select t.id, t.name, t.created_at from users u left join tokens t on t.user_id = u.id
     where u.id = $1 order by t.created_at, t.id`,
    [userId],
  );
  if (rows.length === 0) return null;
  return rows.flatMap(({ id, name, created_at }) =>
    id === null ? [] : [{ id, name, createdAt: created_at.toISOString() }],
  );
}

/**
 * Ends a token at once, and with it the browser sign-ins that it made (foreign key). Its open streams end by the
 * recheck of the mains. Answers whether the user had it.
 */
export async function deleteToken(db: Query, userId: string, tokenId: string): Promise<boolean> {
  const rows = await db.query('delete from tokens where id = $1 and user_id = $2 returning id', [tokenId, userId]);
  return rows.length > 0;
}
