import { newId } from '@turnkeep/shared/contract/ids';
import type { Log } from '@turnkeep/shared/log';
import type { Next } from 'koa';
import type { Ctx } from './context.js';

/**
 * Gives every request an id, shown as X-Request-Id and in the log, and the headers that all answers share. Requests are
 * logged at `debug`, by route and never by path or query.
 * @param isDraining a process that stops asks its clients to connect anew, elsewhere
 */
export function requestId(log: Log, isDraining: () => boolean) {
  return async (ctx: Ctx, next: Next): Promise<void> => {
    const id = newId();
    ctx.state.requestId = id;
    ctx.set({ 'X-Request-Id': id, 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-store' });
    if (isDraining()) ctx.set('Connection', 'close');
    const start = performance.now();
    await next();
    if (!log.isLevelEnabled('debug')) return;
    const ms = Math.round(performance.now() - start);
    log.debug(
      { requestId: id, method: ctx.method, route: ctx._matchedRoute ?? null, status: ctx.status, ms },
      'request',
    );
  };
}
