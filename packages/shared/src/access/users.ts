import type { CreateUser, UserListItem, UserView } from '../contract/access.js';
import { newId } from '../contract/ids.js';
import { ProblemError } from '../contract/problems.js';
import { isUniqueViolation, type Query } from '../db/database.js';

/**
 * Creates a user (contract, section 2, admin API).
 * @throws ProblemError `invalid_request` with the pointer `/email` where another user has that address in any case
 */
export async function createUser(db: Query, { email, name }: CreateUser): Promise<UserView> {
  const id = newId();
  try {
    await db.query('insert into users (id, email, name) values ($1, $2, $3)', [id, email, name]);
  } catch (error) {
    if (!isUniqueViolation(error, 'users_email')) throw error;
    const errors = [{ pointer: '/email', message: 'belongs to another user' }];
    throw new ProblemError('invalid_request', 'The body is not valid.', { errors });
  }
  return { id, email, name };
}

/** All users of the installation, oldest first. */
export async function listUsers(db: Query): Promise<UserListItem[]> {
  const rows = await db.query<{ id: string; email: string; name: string; created_at: Date }>(
    'select id, email, name, created_at from users order by created_at, id',
  );
  return rows.map((row) => ({ id: row.id, email: row.email, name: row.name, createdAt: row.created_at.toISOString() }));
}

/** A user, or null where there is none of that id. */
export async function findUser(db: Query, userId: string): Promise<UserView | null> {
  const [row] = await db.query<UserView>('select id, email, name from users where id = $1', [userId]);
  return row ?? null;
}
