import { cancelExecutionsOf } from '../chat/cancel-executions.js';
import type { MarkedExecution } from '../chat/refs.js';
import { type MemberList, type Role, scopesOf } from '../contract/access.js';
import { ProblemError } from '../contract/problems.js';
import type { Database, Query } from '../db/database.js';
import { lockProject } from './lock-project.js';

/** The members of a project, by their e-mail addresses. */
export async function listMembers(db: Query, projectId: string): Promise<MemberList['members']> {
  return db.query<MemberList['members'][number]>(
    `select u.id as "userId", u.email, u.name, m.role from members m join users u on u.id = m.user_id
     where m.project_id = $1 order by lower(u.email)`,
    [projectId],
  );
}

/**
 * Gives a user a role in a project, as a new member or another role than before (contract, section 2). Locks the project, so
 * that of two changes at once the second sees the first.
 * @returns the executions that were marked for cancelling, since the user lost `agent:execute`; the caller signals them
 * @throws ProblemError `not_found`: no such user; `last_admin`: the project would be left without an admin
 */
export async function setMember(
  db: Database,
  projectId: string,
  userId: string,
  role: Role,
): Promise<MarkedExecution[]> {
  return db.transaction(async (tx) => {
    await lockProject(tx, projectId);
    const before = await roleOf(tx, projectId, userId);
    if (before === undefined) throw noSuchMember();
    if (before === 'admin' && role !== 'admin') await refuseTheLastAdmin(tx, projectId, userId);
    await tx.query(
      `insert into members (project_id, user_id, role) values ($1, $2, $3)
       on conflict (project_id, user_id) do update set role = excluded.role`,
      [projectId, userId, role],
    );
    return scopesOf(role).has('agent:execute') ? [] : cancelExecutionsOf(tx, { projectId, userId });
  });
}

/**
 * Takes a member out of a project; the same lock, answer and errors as `setMember` (`not_found`: no member).
 */
export async function removeMember(db: Database, projectId: string, userId: string): Promise<MarkedExecution[]> {
  return db.transaction(async (tx) => {
    await lockProject(tx, projectId);
    const before = await roleOf(tx, projectId, userId);
    if (!before) throw noSuchMember();
    if (before === 'admin') await refuseTheLastAdmin(tx, projectId, userId);
    await tx.query('delete from members where project_id = $1 and user_id = $2', [projectId, userId]);
    return cancelExecutionsOf(tx, { projectId, userId });
  });
}

/** The role of a user in a project; null: no member; undefined: no such user. */
async function roleOf(tx: Query, projectId: string, userId: string): Promise<Role | null | undefined> {
  const [row] = await tx.query<{ role: Role | null }>(
    'select m.role from users u left join members m on m.user_id = u.id and m.project_id = $1 where u.id = $2',
    [projectId, userId],
  );
  return row?.role;
}

async function refuseTheLastAdmin(tx: Query, projectId: string, userId: string): Promise<void> {
  const others = await tx.query(
    "select from members where project_id = $1 and role = 'admin' and user_id <> $2 limit 1",
    [projectId, userId],
  );
  if (others.length === 0) throw new ProblemError('last_admin', 'Make another member an admin of the project first.');
}

function noSuchMember(): ProblemError {
  return new ProblemError('not_found', 'There is nothing here, or it is not yours.');
}
