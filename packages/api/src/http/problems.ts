import { StoreAway } from '@turnkeep/shared/attachments/store';
import { type ProblemCode, ProblemError, toProblem } from '@turnkeep/shared/contract/problems';
import { DatabaseAway } from '@turnkeep/shared/db/database';
import type { Log } from '@turnkeep/shared/log';
import type { Next } from 'koa';
import { ClientAborted } from './body.js';
import type { Ctx } from './context.js';

/** After how many seconds a client may try again when Postgres, or the store of attachments, is away. */
const RETRY_AFTER_S = 2;

/**
 * Answers everything that a request throws as application/problem+json (contract, section 8). What was not written for a
 * client becomes `internal` or `unavailable` and is logged, once, with the request's id and never with its values.
 */
export function problems(log: Log) {
  return async (ctx: Ctx, next: Next): Promise<void> => {
    try {
      await next();
    } catch (error) {
      const problem = coerce(error);
      report(log, ctx, problem);
      if (ctx.res.headersSent) endStream(ctx);
      else answer(ctx, problem);
    }
  };
}

/** Writes a problem as the response. */
function answer(ctx: Ctx, error: ProblemError): void {
  const body = toProblem(error);
  // A route may have set headers for the answer that it did not give.
  for (const name of ['Content-Encoding', 'Content-Disposition', 'ETag', 'Last-Modified']) ctx.remove(name);
  ctx.status = body.status;
  ctx.set('Cache-Control', 'no-store');
  if (error.code === 'unauthorized') ctx.set('WWW-Authenticate', 'Bearer');
  if (error.retryAfterS !== undefined) ctx.set('Retry-After', String(error.retryAfterS));
  ctx.body = JSON.stringify(body);
  ctx.set('Content-Type', 'application/problem+json; charset=utf-8');
}

/** Headers are out, an event stream most likely: all that is left is to end it. */
function endStream(ctx: Ctx): void {
  ctx.respond = false;
  ctx.res.end();
}

function coerce(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error;
  if (error instanceof DatabaseAway)
    return new ProblemError('unavailable', 'The server cannot reach its database. Try again.', {
      retryAfterS: RETRY_AFTER_S,
      cause: error,
    });
  if (error instanceof StoreAway)
    return new ProblemError('unavailable', 'The server cannot reach its store of attachments. Try again.', {
      retryAfterS: RETRY_AFTER_S,
      cause: error,
    });
  if (error instanceof ClientAborted) return new ProblemError('invalid_request', 'The request broke off.');
  const code = codeOfLibrary(error);
  if (code !== null) return new ProblemError(code, 'The request is not valid HTTP for this server.');
  return new ProblemError('internal', 'Something went wrong on our side.', { cause: error });
}

/** Koa and its helpers throw errors with a status, a malformed percent-encoding in a path for one. */
function codeOfLibrary(error: unknown): ProblemCode | null {
  if (error instanceof URIError) return 'invalid_request';
  const status = error instanceof Error && 'status' in error ? error.status : undefined;
  if (status === 404) return 'not_found';
  if (status === 413) return 'payload_too_large';
  if (status === 415) return 'unsupported_media_type';
  return typeof status === 'number' && status >= 400 && status < 500 ? 'invalid_request' : null;
}

function report(log: Log, ctx: Ctx, problem: ProblemError): void {
  if (problem.code !== 'internal' && problem.code !== 'unavailable') return;
  const { requestId } = ctx.state;
  const error = problem.cause ?? problem;
  log[problem.code === 'internal' ? 'error' : 'warn'](
    { requestId, method: ctx.method, route: ctx._matchedRoute ?? null, code: problem.code, error },
    'request failed',
  );
}
