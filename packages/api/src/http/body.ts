import { ProblemError } from '@turnkeep/shared/contract/problems';
import getRawBody from 'raw-body';
import type { Ctx } from './context.js';

/**
 * Reads a request's JSON body (contract, section 8). Called after the checks of who may do this, so that a stranger's
 * body is never read.
 * @param maxBytes more than this, said or sent, is 413
 * @throws ProblemError `unsupported_media_type`, `payload_too_large`, or `invalid_request` for what is no JSON or no UTF-8
 */
export async function readJson(ctx: Ctx, maxBytes: number): Promise<unknown> {
  refuseOtherTypes(ctx);
  return parseJson(await readBytes(ctx, maxBytes));
}

function refuseOtherTypes(ctx: Ctx): void {
  const [type, ...parameters] = ctx
    .get('content-type')
    .split(';')
    .map((part) => part.trim().toLowerCase());
  if (type !== 'application/json' || parameters.some(isOtherCharset))
    throw new ProblemError('unsupported_media_type', 'Send application/json in UTF-8.');
  const encoding = ctx.get('content-encoding').toLowerCase();
  if (encoding !== '' && encoding !== 'identity')
    throw new ProblemError('unsupported_media_type', 'Send the body without a Content-Encoding.');
}

function isOtherCharset(parameter: string): boolean {
  return parameter.startsWith('charset=') && !/^charset="?utf-?8"?$/.test(parameter);
}

async function readBytes(ctx: Ctx, maxBytes: number): Promise<Buffer> {
  try {
    return await getRawBody(ctx.req, { limit: maxBytes, length: ctx.req.headers['content-length'] ?? null });
  } catch (error) {
    // What still arrives is read and thrown away: the client gets to read its answer, and the connection can go on.
    ctx.req.resume();
    throw coerced(error);
  }
}

function coerced(error: unknown): unknown {
  const type = error instanceof Error && 'type' in error ? error.type : undefined;
  if (type === 'entity.too.large') return new ProblemError('payload_too_large', 'The body is too large.');
  if (type === 'request.aborted') return new ClientAborted(error);
  if (type === 'request.size.invalid')
    return new ProblemError('invalid_request', 'The body has another length than Content-Length says.');
  return error;
}

/** The client broke off while it sent: nobody is there to be answered, and nothing went wrong on our side. */
export class ClientAborted extends Error {
  constructor(cause: unknown) {
    super('the client broke off', { cause });
    this.name = 'ClientAborted';
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true });

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(decoder.decode(bytes));
  } catch {
    throw new ProblemError('invalid_request', 'The body is not JSON in UTF-8.');
  }
}
