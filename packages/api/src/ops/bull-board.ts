import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { KoaAdapter } from '@bull-board/koa';
import type { Middleware, Next } from 'koa';
import type { Deps } from '../deps.js';
import type { Ctx, State } from '../http/context.js';
import type { Guard } from '../http/guard.js';
import { prefixOf } from '../http/public-url.js';

const PATH = '/ops/queues';

/**
 * Bull Board for the instance admin (contract, section 1). Jobs are only wake-ups, so whatever is done to them here loses nothing.
 * Its page wants styles of its own inline and fonts from the internet; the fonts stay out, by the policy of `pageHeaders`.
 */
export function bullBoard({ config, log, turnQueue }: Deps, guard: Guard): Middleware<State> {
  const adapter = new KoaAdapter();
  adapter.setBasePath(`${prefixOf(config.publicUrl)}${PATH}`);
  createBullBoard({ queues: [new BullMQAdapter(turnQueue.queue)], serverAdapter: adapter });
  // Its own handler would show the error's message, Redis' address for one. The page knows this key.
  adapter.setErrorHandler((error) => {
    log.warn({ error }, 'Bull Board');
    return { status: 500, body: { error: { key: 'ERRORS.INTERNAL_SERVER_ERROR' } } };
  });
  const board = adapter.registerPlugin({ mount: PATH }) as Middleware<State>;
  return async (ctx: Ctx, next: Next) => {
    if (ctx.path !== PATH && !ctx.path.startsWith(`${PATH}/`)) return next();
    await guard.admin(ctx);
    return board(ctx as Parameters<typeof board>[0], next);
  };
}

/** True for the paths of Bull Board, which has page headers of its own. */
export function isBullBoard(path: string): boolean {
  return path === PATH || path.startsWith(`${PATH}/`);
}
