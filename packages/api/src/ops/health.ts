import Router from '@koa/router';
import type { Deps } from '../deps.js';
import type { State } from '../http/context.js';

/** How long Postgres and Redis have to answer before they count as away, in ms. */
const CHECK_MS = 2_000;

/**
 * `/healthz`: the process runs. `/readyz`: it can serve; Redis being away is `degraded` and still ready (contract, section
 * 8). `/metrics`: for Prometheus. None asks for a sign-in, so none tells an address or an error.
 */
export function healthRoutes({ db, redis, metrics, isDraining }: Deps): Router<State> {
  const router = new Router<State>();

  router.get('/healthz', (ctx) => {
    ctx.body = { status: 'ok' };
  });

  router.get('/readyz', async (ctx) => {
    const [postgres, cache] = await Promise.all([isUp(() => db.query('select 1')), isUp(() => redis.ping())]);
    const ready = postgres && !isDraining();
    const status = !ready ? 'unavailable' : cache ? 'ok' : 'degraded';
    ctx.status = ready ? 200 : 503;
    ctx.body = { status, postgres: postgres ? 'up' : 'away', redis: cache ? 'up' : 'away', draining: isDraining() };
  });

  router.get('/metrics', async (ctx) => {
    ctx.set('Content-Type', metrics.registry.contentType);
    ctx.body = await metrics.registry.metrics();
  });

  return router;
}

/** True where `ask` resolves in time. */
async function isUp(ask: () => Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, CHECK_MS, false);
  });
  const answer = ask().then(
    () => true,
    () => false,
  );
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}
