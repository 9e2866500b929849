import type { Ctx } from './context.js';

/** Types that a browser may show in place; everything else is a download (contract, section 5). */
const SHOWN = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

/**
 * Says what a response's bytes are, so that no browser runs anything of them: the sniffed type and no other, to be saved
 * but for four kinds of images, and in a sandbox without scripts should a browser open it nevertheless.
 * @param mimeType as sniffed
 */
export function describeFile(ctx: Ctx, mimeType: string, fileName: string): void {
  ctx.type = mimeType;
  ctx.set('X-Content-Type-Options', 'nosniff');
  ctx.set('Content-Security-Policy', "default-src 'none'; sandbox");
  ctx.set('Cross-Origin-Resource-Policy', 'same-origin');
  // An attachment never changes; but whose it is does not outlive a sign-out in a shared browser's cache.
  ctx.set('Cache-Control', 'private, no-store');
  const name = savedName(fileName);
  // The plain name for old clients is ASCII: what a proxy makes of other bytes in a header is anybody's guess.
  const fallback = name.replace(/[^\x20-\x7e]/gu, '_');
  ctx.attachment(name, { type: SHOWN.has(mimeType) ? 'inline' : 'attachment', fallback });
}

/** RFC 6266, section 4.3: no separators of paths, and no name that means a folder. Koa escapes quotes and adds `filename*`. */
function savedName(fileName: string): string {
  const name = fileName.replace(/[/\\]/g, '_');
  return /^\.*$/.test(name) ? 'file' : name;
}
