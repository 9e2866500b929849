import Router from '@koa/router';
import { createSignInLink } from '@turnkeep/shared/access/sign-in-links';
import { createToken, deleteToken, listTokens } from '@turnkeep/shared/access/tokens';
import { createUser, listUsers } from '@turnkeep/shared/access/users';
import { CreateToken, CreateUser } from '@turnkeep/shared/contract/access';
import { accept, compile } from '@turnkeep/shared/contract/validate';
import type { Deps } from '../deps.js';
import { readJson } from '../http/body.js';
import type { State } from '../http/context.js';
import type { Guard } from '../http/guard.js';
import { found, pathId } from '../http/not-found.js';
import { publicUrlOf } from '../http/public-url.js';

const checkUser = compile(CreateUser);
const checkToken = compile(CreateToken);

/** The admin API: users, their tokens and sign-in links (contract, section 2). Every route asks for the instance admin first. */
export function adminRoutes({ db, config }: Deps, guard: Guard): Router<State> {
  const router = new Router<State>();
  const { maxRequestBytes } = config.limits;

  router.post('/admin/users', async (ctx) => {
    await guard.admin(ctx);
    const request = accept(checkUser(await readJson(ctx, maxRequestBytes)), 'The body');
    ctx.body = await createUser(db, request);
    ctx.status = 201;
  });

  router.get('/admin/users', async (ctx) => {
    await guard.admin(ctx);
    ctx.body = { users: await listUsers(db) };
  });

  router.post('/admin/users/:id/tokens', async (ctx) => {
    await guard.admin(ctx);
    const userId = found(pathId(ctx.params.id));
    // The user comes before the body: a 404 goes before a 400.
    found(await listTokens(db, userId));
    const { name } = accept(checkToken(await readJson(ctx, maxRequestBytes)), 'The body');
    ctx.body = found(await createToken(db, userId, name));
    ctx.status = 201;
  });

  router.get('/admin/users/:id/tokens', async (ctx) => {
    await guard.admin(ctx);
    ctx.body = { tokens: found(await listTokens(db, found(pathId(ctx.params.id)))) };
  });

  router.delete('/admin/users/:id/tokens/:tokenId', async (ctx) => {
    await guard.admin(ctx);
    const userId = found(pathId(ctx.params.id));
    found(await deleteToken(db, userId, found(pathId(ctx.params.tokenId))));
    ctx.body = { deleted: true };
  });

  router.post('/admin/users/:id/link', async (ctx) => {
    await guard.admin(ctx);
    const { code, expiresAt } = found(await createSignInLink(db, found(pathId(ctx.params.id))));
    // In the fragment, which a browser keeps to itself: the code reaches no log on the way.
    ctx.body = { url: `${publicUrlOf(ctx, config.publicUrl)}/#${code}`, expiresAt };
    ctx.status = 201;
  });

  return router;
}
