import Router from '@koa/router';
import { findUser } from '@turnkeep/shared/access/users';
import { signIn, signInAdmin, signOut } from '@turnkeep/shared/access/web-sessions';
import { type Me, SignIn } from '@turnkeep/shared/contract/access';
import { ProblemError } from '@turnkeep/shared/contract/problems';
import { accept, compile } from '@turnkeep/shared/contract/validate';
import type { Query } from '@turnkeep/shared/db/database';
import type { Deps } from '../deps.js';
import { readJson } from '../http/body.js';
import type { State } from '../http/context.js';
import type { Guard } from '../http/guard.js';
import { found } from '../http/not-found.js';
import { requireSameOrigin } from '../http/same-origin.js';
import { clearCookie, cookieHash, readCookie, writeCookie } from './cookie.js';

const checkSignIn = compile(SignIn);
/** A sign-in is a short secret; nobody is known yet, so little is read. */
const MAX_BYTES = 16_384;

/** Signing a browser in and out, and who is signed in (contract, section 2). */
export function sessionRoutes({ db, config }: Deps, guard: Guard): Router<State> {
  const router = new Router<State>();
  const { publicUrl } = config;

  router.post('/auth/session', async (ctx) => {
    const before = readCookie(ctx);
    if (before !== null) requireSameOrigin(ctx, publicUrl);
    const { token } = accept(checkSignIn(await readJson(ctx, MAX_BYTES)), 'The body');
    const { cookie, userId } = await start(token);
    const hash = before === null ? null : cookieHash(before);
    if (hash !== null) await signOut(db, hash);
    writeCookie(ctx, publicUrl, cookie);
    ctx.body = await me(db, userId);
  });

  router.delete('/auth/session', async (ctx) => {
    const { webSession } = await guard.anyone(ctx);
    if (webSession !== null) await signOut(db, webSession);
    clearCookie(ctx, publicUrl);
    ctx.body = { deleted: true };
  });

  router.get('/me', async (ctx) => {
    const caller = await guard.anyone(ctx);
    ctx.body = await me(db, caller.kind === 'admin' ? null : caller.userId);
  });

  /** A sign-in for whomever the secret belongs to; the instance admin has no user. */
  async function start(secret: string): Promise<{ cookie: string; userId: string | null }> {
    const adminHash = guard.adminHash(secret);
    if (adminHash !== null) return { cookie: await signInAdmin(db, adminHash), userId: null };
    const started = await signIn(db, secret);
    if (started !== null) return started;
    throw new ProblemError('unauthorized', 'This token or link is not valid, or no longer.');
  }

  return router;
}

async function me(db: Query, userId: string | null): Promise<Me> {
  if (userId === null) return { id: null, email: null, name: null, instanceAdmin: true };
  return { ...found(await findUser(db, userId)), instanceAdmin: false };
}
