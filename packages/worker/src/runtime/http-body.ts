import { toStorable } from '@turnkeep/shared/contract/text';
import { type JsonValue, parseForeignJson } from './json.js';

const MAX_BODY_BYTES = 32 * 1024 * 1024;

/** An answer over the bound. Its message is fit for the model and the transcript. */
export class TooLarge extends Error {
  constructor() {
    super(`The tool's answer is larger than ${MAX_BODY_BYTES / 1024 / 1024} MiB and was not read to its end.`);
  }
}

/**
 * A response's body as a storable value (contract section 8): parsed where it says and is JSON, text by its charset, for
 * other types a short note. Errors: `TooLarge` past 32 MiB, and what the connection throws.
 */
export async function readBody(response: Response): Promise<JsonValue> {
  const type = (response.headers.get('content-type') ?? '').toLowerCase();
  const bytes = await collect(response);
  if (bytes.length === 0) return '';
  const text = isText(type) ? decode(bytes, type) : type === '' ? decodeStrictly(bytes) : undefined;
  if (text === undefined)
    return `[A file of type ${type.split(';')[0] || 'unknown'} with ${bytes.length} bytes; not shown.]`;
  const parsed = type === '' || /[/+]json\b/.test(type) ? parseForeignJson(text) : undefined;
  return parsed === undefined ? toStorable(text) : parsed;
}

async function collect(response: Response): Promise<Buffer> {
  if (Number(response.headers.get('content-length') ?? 0) > MAX_BODY_BYTES) throw new TooLarge();
  const chunks: Uint8Array[] = [];
  let total = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    total += chunk.length;
    if (total > MAX_BODY_BYTES) throw new TooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, total);
}

function isText(type: string): boolean {
  return /^text\/|[/+](json|xml|javascript|x-www-form-urlencoded|yaml|x-ndjson|jsonl)\b/.test(type);
}

function decode(bytes: Buffer, type: string): string {
  const label = /charset\s*=\s*"?([^\s;"]+)/.exec(type)?.[1] ?? 'utf-8';
  try {
    return new TextDecoder(label).decode(bytes);
  } catch {
    return new TextDecoder().decode(bytes);
  }
}

/** Without a type only valid UTF-8 counts as text. */
function decodeStrictly(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
