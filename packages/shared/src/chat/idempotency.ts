import { createHash } from 'node:crypto';
import { ProblemError } from '../contract/problems.js';
import type { Query } from '../db/database.js';

/** An `Idempotency-Key` with the hash of what it came with. */
export interface IdempotencyKey {
  key: string;
  hash: Buffer;
}

/** How long a key is kept (contract, section 4). */
const KEPT = '24 hours';

/** SHA-256 of the route and the body, the body's members in a fixed order, so that a client may write them in any. */
export function hashRequest(route: string, body: unknown): Buffer {
  return createHash('sha256').update(route).update('\0').update(canonical(body)).digest();
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join()}}`;
}

/**
 * Claims a key for this transaction, or answers what it was first used for. Two requests with one key: the second waits
 * here until the first has committed or rolled back. A refusal rolls the key back with everything else.
 * @returns null where the key is ours now; otherwise the first answer
 * @throws ProblemError `idempotency_mismatch` where it came with something else
 */
export async function claimKey<Answer>(tx: Query, userId: string, key: IdempotencyKey): Promise<Answer | null> {
  await tx.query(
    `delete from idempotency_keys where user_id = $1 and key = $2 and created_at < now() - interval '${KEPT}'`,
    [userId, key.key],
  );
  const claimed = await tx.query(
    `insert into idempotency_keys (user_id, key, hash) values ($1, $2, $3)
     on conflict (user_id, key) do nothing returning key`,
    [userId, key.key, key.hash],
  );
  if (claimed.length > 0) return null;
  const [row] = await tx.query<{ hash: Buffer; answer: Answer }>(
    'select hash, answer from idempotency_keys where user_id = $1 and key = $2',
    [userId, key.key],
  );
  if (!row?.hash.equals(key.hash))
    throw new ProblemError('idempotency_mismatch', 'This Idempotency-Key was used for a different request.');
  return row.answer;
}

/** Whether a key of this user was accepted before: then its first answer counts, whatever became of the session since. */
export async function isKeyUsed(db: Query, userId: string, key: string): Promise<boolean> {
  const rows = await db.query(
    `select key from idempotency_keys where user_id = $1 and key = $2 and created_at >= now() - interval '${KEPT}'`,
    [userId, key],
  );
  return rows.length > 0;
}

/** Keeps the answer of a key that this transaction has claimed. */
export async function keepAnswer(tx: Query, userId: string, key: IdempotencyKey, answer: unknown): Promise<void> {
  await tx.query('update idempotency_keys set answer = $3 where user_id = $1 and key = $2', [
    userId,
    key.key,
    JSON.stringify(answer),
  ]);
}

/** Removes keys that are past their day, at most `count`. */
export async function forgetKeys(db: Query, count: number): Promise<void> {
  await db.query(
    `delete from idempotency_keys where (user_id, key) in (
       select user_id, key from idempotency_keys where created_at < now() - interval '${KEPT}' limit $1)`,
    [count],
  );
}
