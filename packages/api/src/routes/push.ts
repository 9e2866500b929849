import Router from '@koa/router';
import type { ChatDeps } from '../deps.js';
import type { State } from '../http/context.js';
import type { Guard } from '../http/guard.js';

/** The user's notifications (contract, section 7). */
export function pushRoutes({ streams, notifications }: ChatDeps, guard: Guard): Router<State> {
  const router = new Router<State>();
  router.get('/push', async (ctx) => {
    const access = await guard.user(ctx);
    const place = await streams.takePlace(access.userId);
    try {
      const { connection } = place.open(ctx, { ...access, projectId: null }, 'push');
      if (streams.isDraining) connection.end();
      await notifications.serve(connection, access.userId);
    } catch (error) {
      place.giveUp();
      throw error;
    }
  });
  return router;
}
