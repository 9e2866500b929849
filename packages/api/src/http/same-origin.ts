import { ProblemError } from '@turnkeep/shared/contract/problems';
import type { Ctx } from './context.js';
import { ownOrigin } from './public-url.js';

/**
 * Refuses a state-changing request that a browser sends with its cookie from another origin (contract, section 2).
 * `Sec-Fetch-Site` is believed first; a browser that does not send it (over plain http) sends `Origin`. Neither: refused.
 * @param publicUrl PUBLIC_URL; the request's own origin (by X-Forwarded-* where the proxy is trusted) is right as well
 * @throws ProblemError `forbidden`
 */
export function requireSameOrigin(ctx: Ctx, publicUrl: string | null): void {
  if (ctx.method === 'GET' || ctx.method === 'HEAD') return;
  const site = ctx.get('sec-fetch-site');
  const same = site === '' ? isOwnOrigin(ctx, publicUrl) : site === 'same-origin' || site === 'none';
  if (!same) throw new ProblemError('forbidden', 'A browser may send this from this server’s own pages only.');
}

function isOwnOrigin(ctx: Ctx, publicUrl: string | null): boolean {
  const origin = ctx.get('origin');
  if (origin === '') return false;
  return origin === ownOrigin(ctx) || (publicUrl !== null && origin === new URL(publicUrl).origin);
}
