import { ProblemError } from '@turnkeep/shared/contract/problems';
import busboy from 'busboy';
import type { Ctx } from './context.js';

/** The one file of a multipart/form-data request. */
export interface Upload {
  fileName: string;
  data: Buffer;
}

/**
 * Reads a multipart/form-data body that holds exactly one file (contract, section 4).
 * @param maxBytes of the file; more is 413
 * @throws ProblemError `unsupported_media_type`, `payload_too_large`, `invalid_request`
 */
export async function readUpload(ctx: Ctx, maxBytes: number): Promise<Upload> {
  if (!/^multipart\/form-data\s*;/i.test(ctx.get('content-type')))
    throw new ProblemError('unsupported_media_type', 'Send multipart/form-data with one file.');
  try {
    return await parse(ctx, maxBytes);
  } catch (error) {
    // What still arrives is read and thrown away, so that the client gets to read its answer.
    ctx.req.unpipe();
    ctx.req.resume();
    throw error instanceof ProblemError ? error : malformed();
  }
}

function malformed(): ProblemError {
  return new ProblemError('invalid_request', 'The body is not multipart/form-data with one file.');
}

async function parse(ctx: Ctx, maxBytes: number): Promise<Upload> {
  return new Promise((resolve, reject) => {
    const files: Upload[] = [];
    const parser = busboy({
      headers: ctx.req.headers,
      defParamCharset: 'utf8',
      limits: { files: 2, fields: 10, parts: 20, fileSize: maxBytes + 1, fieldSize: 65_536 },
    });
    parser.on('file', (_field, stream, info) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('error', reject);
      stream.on('limit', () =>
        reject(new ProblemError('payload_too_large', `An attachment may have at most ${maxBytes} bytes.`)),
      );
      stream.on('end', () => files.push({ fileName: info.filename ?? '', data: Buffer.concat(chunks) }));
    });
    parser.on('error', reject);
    parser.on('close', () => {
      const [file] = files;
      if (file && files.length === 1) resolve(file);
      else reject(malformed());
    });
    ctx.req.on('aborted', () => reject(malformed()));
    ctx.req.pipe(parser);
  });
}
