import { hashOf, isSecretOf } from '@turnkeep/shared/access/secret';
import { WEB_SESSION_S } from '@turnkeep/shared/access/web-sessions';
import type { Ctx } from '../http/context.js';
import { prefixOf, publicUrlOf } from '../http/public-url.js';

/** The cookie of a browser's sign-in (contract, section 2). */
const COOKIE = 'turnkeep_session';

/** The cookie of a request; null where it sends none. */
export function readCookie(ctx: Ctx): string | null {
  for (const pair of ctx.get('cookie').split(';')) {
    const at = pair.indexOf('=');
    if (at > 0 && pair.slice(0, at).trim() === COOKIE) return pair.slice(at + 1).trim();
  }
  return null;
}

/** The hash of a cookie's value; null where it cannot be one of ours. */
export function cookieHash(value: string): Buffer | null {
  return isSecretOf('ws', value) ? hashOf(value) : null;
}

/** Sets the cookie for 30 days from now, on the path of PUBLIC_URL. */
export function writeCookie(ctx: Ctx, publicUrl: string | null, value: string): void {
  ctx.append('Set-Cookie', cookie(ctx, publicUrl, value, WEB_SESSION_S));
}

/** Takes the cookie away. */
export function clearCookie(ctx: Ctx, publicUrl: string | null): void {
  ctx.append('Set-Cookie', cookie(ctx, publicUrl, '', 0));
}

function cookie(ctx: Ctx, publicUrl: string | null, value: string, maxAgeS: number): string {
  const secure = publicUrlOf(ctx, publicUrl).startsWith('https:') ? '; Secure' : '';
  const path = prefixOf(publicUrl) || '/';
  return `${COOKIE}=${value}; Path=${path}; Max-Age=${maxAgeS}; HttpOnly; SameSite=Strict${secure}`;
}
