import Router from '@koa/router';
import { listMembers, removeMember, setMember } from '@turnkeep/shared/access/members';
import { createProject, listProjects } from '@turnkeep/shared/access/projects';
import { findUser } from '@turnkeep/shared/access/users';
import type { MarkedExecution } from '@turnkeep/shared/chat/refs';
import { CreateProject, SetMember } from '@turnkeep/shared/contract/access';
import { accept, compile } from '@turnkeep/shared/contract/validate';
import type { Deps } from '../deps.js';
import { readJson } from '../http/body.js';
import type { State } from '../http/context.js';
import type { Guard } from '../http/guard.js';
import { found, pathId } from '../http/not-found.js';

const checkProject = compile(CreateProject);
const checkMember = compile(SetMember);

/** Projects and their members (contract, section 2). */
export function projectRoutes({ db, config, signals }: Deps, guard: Guard): Router<State> {
  const router = new Router<State>();
  const { maxRequestBytes } = config.limits;

  router.post('/projects', async (ctx) => {
    const { userId } = await guard.user(ctx);
    const { name } = accept(checkProject(await readJson(ctx, maxRequestBytes)), 'The body');
    ctx.body = await createProject(db, userId, name);
    ctx.status = 201;
  });

  router.get('/projects', async (ctx) => {
    const { userId } = await guard.user(ctx);
    ctx.body = { projects: await listProjects(db, userId) };
  });

  router.get('/projects/:projectId/members', async (ctx) => {
    const { projectId } = await guard.project(ctx, 'project:manage');
    ctx.body = { members: await listMembers(db, projectId) };
  });

  router.put('/projects/:projectId/members/:userId', async (ctx) => {
    const { projectId } = await guard.project(ctx, 'project:manage');
    const { id: userId } = found(await findUser(db, found(pathId(ctx.params.userId))));
    const { role } = accept(checkMember(await readJson(ctx, maxRequestBytes)), 'The body');
    await signalAll(await setMember(db, projectId, userId, role));
    ctx.body = { userId, role };
  });

  router.delete('/projects/:projectId/members/:userId', async (ctx) => {
    const { projectId } = await guard.project(ctx, 'project:manage');
    await signalAll(await removeMember(db, projectId, found(pathId(ctx.params.userId))));
    ctx.body = { removed: true };
  });

  /** The marks are committed; a signal that is lost is found by the worker's next heartbeat. */
  async function signalAll(marked: readonly MarkedExecution[]): Promise<void> {
    await Promise.all(marked.map(({ workerId, executionId }) => signals.cancel(workerId, executionId)));
  }

  return router;
}
