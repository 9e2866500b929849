import Router from '@koa/router';
import { readQueue } from '@turnkeep/shared/chat/read-queue';
import type { ChatDeps } from '../deps.js';
import type { State } from '../http/context.js';
import type { Guard } from '../http/guard.js';
import { ownSession } from '../http/session-path.js';
import { AGENT } from './chat.js';

/** The queue of a session (contract, section 6). */
export function queueRoutes({ db }: ChatDeps, guard: Guard): Router<State> {
  const router = new Router<State>();
  router.get(`${AGENT}/chat/:threadId/queue`, async (ctx) => {
    const { session } = await ownSession(db, guard, ctx, 'agent:read');
    ctx.body = await readQueue(db, session.sessionId);
  });
  return router;
}
