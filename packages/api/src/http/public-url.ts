import type { Next } from 'koa';
import type { Ctx } from './context.js';

/**
 * The URL that browsers use, without a trailing slash: PUBLIC_URL, else the request's own origin (by X-Forwarded-* where the
 * proxy is trusted).
 */
export function publicUrlOf(ctx: Ctx, publicUrl: string | null): string {
  return publicUrl ?? ownOrigin(ctx);
}

/** The origin that the request was sent to. (Koa's `ctx.origin` is the header of that name, the page it was sent from.) */
export function ownOrigin(ctx: Ctx): string {
  return `${ctx.protocol}://${ctx.host}`;
}

/** The path prefix of PUBLIC_URL without a trailing slash; '' for none. */
export function prefixOf(publicUrl: string | null): string {
  return publicUrl === null ? '' : new URL(publicUrl).pathname.replace(/\/+$/, '');
}

/**
 * Takes the prefix of PUBLIC_URL from the path. A proxy may have taken it already, so a path without it is as good.
 * The prefix alone is sent on to the one with a slash, since pages name their files relatively.
 */
export function withoutPrefix(publicUrl: string | null) {
  const prefix = prefixOf(publicUrl);
  return async (ctx: Ctx, next: Next): Promise<void> => {
    if (prefix !== '' && ctx.path === prefix) {
      ctx.status = 308;
      ctx.redirect(`${prefix}/${ctx.search}`);
      return;
    }
    if (prefix !== '' && ctx.path.startsWith(`${prefix}/`)) ctx.path = ctx.path.slice(prefix.length);
    await next();
  };
}
