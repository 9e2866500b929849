import type { Middleware } from 'koa';
import helmet from 'koa-helmet';
import { isBullBoard } from '../ops/bull-board.js';
import type { Ctx, State } from './context.js';

type Directives = Record<string, string[]>;

/** Everything from this server alone; nothing inline, no frame around it, no plugin, no form to elsewhere. */
const STRICT: Directives = {
  defaultSrc: ["'self'"],
  imgSrc: ["'self'", 'data:', 'blob:'],
  objectSrc: ["'none'"],
  baseUri: ["'none'"],
  formAction: ["'self'"],
  frameAncestors: ["'none'"],
};

/** Bull Board's page has a base tag and style attributes. */
const BULL_BOARD: Directives = { ...STRICT, styleSrc: ["'self'", "'unsafe-inline'"], baseUri: ["'self'"] };

/**
 * The security headers of pages. koa-helmet's defaults are not taken: they include HSTS and `upgrade-insecure-requests`,
 * which break an installation on plain http, and inline styles. HSTS is for the proxy that ends TLS to say.
 */
export function pageHeaders(): Middleware<State> {
  const strict = headersWith(STRICT);
  const board = headersWith(BULL_BOARD);
  return (ctx: Ctx, next) => {
    const headers = isBullBoard(ctx.path) ? board : strict;
    return headers(ctx as Parameters<typeof headers>[0], next);
  };
}

function headersWith(directives: Directives) {
  return helmet({
    contentSecurityPolicy: { useDefaults: false, directives },
    strictTransportSecurity: false,
    referrerPolicy: { policy: 'no-referrer' },
    xFrameOptions: { action: 'deny' },
    xXssProtection: false,
  });
}
