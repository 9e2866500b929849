import type { Query } from '../db/database.js';

/**
 * Holds a project until the transaction ends, so that changes of its members and of its agents come one after the other:
 * the rules for the last admin and for delegates look at several rows. `no key`: new sessions, which refer to the
 * project, do not wait for it.
 */
export async function lockProject(tx: Query, projectId: string): Promise<void> {
  await tx.query('select from projects where id = $1 for no key update', [projectId]);
}
