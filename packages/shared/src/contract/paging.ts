/** Paging back through a transcript or a list of sessions: section 5. */
import Type from 'typebox';
import { isUuid } from './ids.js';
import type { FieldError } from './problems.js';
import { closed } from './schema.js';
import type { Checked } from './validate.js';

const maxLimit = 1_000;
/** The page of a request that names none. */
export const defaultLimit = 200;

/** The query parameters as the documents show them. */
export const PageQuery = closed('PageQuery', {
  before: Type.Optional(Type.String({ format: 'uuid', description: 'Only what stands before this id.' })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: maxLimit, default: defaultLimit })),
});

/** `before` (a lower-case UUID) is absent for the newest page. */
export type Page = { before?: string; limit: number };

/** Reads `?before=&limit=`; pointers of its errors name the parameters. One given twice is an error; others are ignored. */
export function readPage(query: Readonly<Record<string, string | string[] | undefined>>): Checked<Page> {
  const { before, limit = String(defaultLimit) } = query;
  const errors: FieldError[] = [];
  if (before !== undefined && !isOneUuid(before)) errors.push({ pointer: '/before', message: 'must be a UUID' });
  if (!isLimit(limit)) errors.push({ pointer: '/limit', message: `must be an integer from 1 to ${maxLimit}` });
  if (errors.length > 0) return { ok: false, errors };
  return { ok: true, value: { ...(isOneUuid(before) ? { before: before.toLowerCase() } : {}), limit: Number(limit) } };
}

function isOneUuid(value: string | string[] | undefined): value is string {
  return typeof value === 'string' && isUuid(value);
}

function isLimit(value: string | string[]): boolean {
  return typeof value === 'string' && /^[0-9]{1,4}$/.test(value) && Number(value) >= 1 && Number(value) <= maxLimit;
}
