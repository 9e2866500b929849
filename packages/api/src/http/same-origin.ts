import { ProblemError } from '@turnkeep/shared/contract/problems';
import type { Ctx } from './context.js';
import { ownOrigin } from './public-url.js';

/**
 * Refuses a state-changing request that a browser sends with its cookie from another origin (contract, section 2).
 * A browser sends `Sec-Fetch-Site`, or over plain http perhaps `Origin` alone; whichever is there must say so. Neither:
 * refused.
 * @param publicUrl PUBLIC_URL; the request's own origin (by X-Forwarded-* where the proxy is trusted) is right as well
 * @throws ProblemError `forbidden`
 */
export function requireSameOrigin(ctx: Ctx, publicUrl: string | null): void {
  if (ctx.method === 'GET' || ctx.method === 'HEAD') return;
  const site = ctx.get('sec-fetch-site');
  const origin = ctx.get('origin');
  const isOwn = origin !== '' && isOwnOrigin(ctx, publicUrl);
  const same = site === '' ? isOwn : site === 'same-origin' && (origin === '' || isOwn);
  if (!same) throw new ProblemError('forbidden', 'A browser may send this from this server’s own pages only.');
}

function isOwnOrigin(ctx: Ctx, publicUrl: string | null): boolean {
  const origin = ctx.get('origin');
  return origin === ownOrigin(ctx) || (publicUrl !== null && origin === new URL(publicUrl).origin);
}
