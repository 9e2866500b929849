import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import type { Middleware } from 'koa';
import type { Ctx, State } from './context.js';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.json': 'application/json',
};

interface StaticFile {
  bytes: Buffer;
  type: string;
  etag: string;
  cacheControl: string;
}

/**
 * Serves the files of a directory to anybody; `/` is its index.html. They are read once, at the start: a few hundred KB, and a
 * path of a request never reaches the disk. A browser asks again each time and is answered 304, but for names that hold
 * their content's hash (`name-<hash>.js`), which are kept for a year.
 */
export function staticFiles(directory: string, pageHeaders: Middleware<State>): Middleware<State> {
  const files = readFiles(directory);
  return async (ctx, next) => {
    const file = isRead(ctx.method) ? files.get(ctx.path === '/' ? '/index.html' : ctx.path) : undefined;
    if (file === undefined) return next();
    await pageHeaders(ctx, async () => send(ctx, file));
  };
}

function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}

function send(ctx: Ctx, { bytes, type, etag, cacheControl }: StaticFile): void {
  ctx.status = 200;
  ctx.set({ 'Content-Type': type, ETag: etag, 'Cache-Control': cacheControl });
  if (ctx.fresh) ctx.status = 304;
  else ctx.body = bytes;
}

function readFiles(directory: string): Map<string, StaticFile> {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    entries.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [`/${relative(directory, path).split(sep).join('/')}`, readStaticFile(path)];
    }),
  );
}

function readStaticFile(path: string): StaticFile {
  const bytes = readFileSync(path);
  const hashed = /-[A-Za-z0-9_-]{8,}\.[a-z0-9]+$/.test(path);
  return {
    bytes,
    type: TYPES[extname(path)] ?? 'application/octet-stream',
    etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 27)}"`,
    cacheControl: hashed ? 'public, max-age=31536000, immutable' : 'no-cache',
  };
}
