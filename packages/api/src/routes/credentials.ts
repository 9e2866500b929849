import Router from '@koa/router';
import { createCredential, deleteCredential, listCredentials } from '@turnkeep/shared/agents/credentials';
import { CreateCredential } from '@turnkeep/shared/contract/access';
import { accept, compile } from '@turnkeep/shared/contract/validate';
import type { Deps } from '../deps.js';
import { readJson } from '../http/body.js';
import type { State } from '../http/context.js';
import type { Guard } from '../http/guard.js';
import { found, pathId } from '../http/not-found.js';

const checkCredential = compile(CreateCredential);
const CREDENTIALS = '/projects/:projectId/credentials';

/** Credentials of models (contract, section 3). No answer holds a secret. */
export function credentialRoutes({ db, config }: Deps, guard: Guard): Router<State> {
  const router = new Router<State>();

  router.post(CREDENTIALS, async (ctx) => {
    const { projectId } = await guard.project(ctx, 'agent:write');
    const request = accept(checkCredential(await readJson(ctx, config.limits.maxRequestBytes)), 'The body');
    ctx.body = await createCredential(db, config.encryptionKey, projectId, request);
    ctx.status = 201;
  });

  router.get(CREDENTIALS, async (ctx) => {
    const { projectId } = await guard.project(ctx, 'agent:write');
    ctx.body = { credentials: await listCredentials(db, projectId) };
  });

  router.delete(`${CREDENTIALS}/:credentialId`, async (ctx) => {
    const { projectId } = await guard.project(ctx, 'agent:write');
    found(await deleteCredential(db, projectId, found(pathId(ctx.params.credentialId))));
    ctx.body = { deleted: true };
  });

  return router;
}
