import type { ProjectList, ProjectView } from '../contract/access.js';
import { newId } from '../contract/ids.js';
import type { Query } from '../db/database.js';

/** Creates a project with its creator as its admin, in one statement (contract, section 2). */
export async function createProject(db: Query, userId: string, name: string): Promise<ProjectView> {
  const id = newId();
  await db.query(
    `with project as (insert into projects (id, name) values ($1, $2) returning id)
     insert into members (project_id, user_id, role) select id, $3, 'admin' from project`,
    [id, name, userId],
  );
  return { id, name };
}

/** The projects of which the user is a member, with their role there, oldest first. */
export async function listProjects(db: Query, userId: string): Promise<ProjectList['projects']> {
  return db.query<ProjectList['projects'][number]>(
    `select p.id, p.name, m.role from members m join projects p on p.id = m.project_id
     where m.user_id = $1 order by p.created_at, p.id`,
    [userId],
  );
}
