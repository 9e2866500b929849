/// <reference lib="es2024.string" />
import type { FieldError } from './problems.js';
import { isStorable } from './text.js';

/** At most so many errors are reported for one request. */
export const maxErrors = 20;
/** No request of the contract needs more than about 10; an agent's inputSchema may take some. */
const maxDepth = 64;
const maxKeyChars = 100;

/** What `inspect` found: up to 20 errors, and how many values (containers included) it looked at. */
export type Inspection = { errors: FieldError[]; values: number };
type Walk = Inspection & { path: (string | number)[] };

/**
 * Walks a JSON value and reports strings and keys that cannot be stored (section 8) and nesting deeper than 64 levels. It stops
 * at the 20th error, and never goes deeper than the bound, so that a hostile body costs one pass at most.
 */
export function inspect(value: unknown): Inspection {
  const found: Walk = { errors: [], values: 0, path: [] };
  walk(value, found);
  return { errors: found.errors, values: found.values };
}

// The path is one array that grows and shrinks, and becomes a pointer only for an error: a body may hold millions of values.
function walk(value: unknown, found: Walk): void {
  found.values++;
  if (found.errors.length >= maxErrors) return;
  if (typeof value === 'string') {
    if (!isStorable(value)) report(found, 'must hold neither U+0000 nor a lone surrogate');
  } else if (typeof value === 'object' && value !== null) {
    if (found.path.length >= maxDepth) report(found, `must not be nested deeper than ${maxDepth} levels`);
    else if (Array.isArray(value)) for (let at = 0; at < value.length; at++) step(value[at], at, found);
    else walkObject(value as Record<string, unknown>, found);
  }
}

function walkObject(value: Record<string, unknown>, found: Walk): void {
  for (const key of Object.keys(value)) {
    if (isStorable(key)) step(value[key], key, found);
    else report(found, 'must have no key with U+0000 or a lone surrogate');
  }
}

function step(value: unknown, key: string | number, found: Walk): void {
  found.path.push(key);
  walk(value, found);
  found.path.pop();
}

function report(found: Walk, message: string): void {
  if (found.errors.length >= maxErrors) return;
  const pointer = found.path.map((key) => `/${escapeKey(String(key))}`).join('');
  found.errors.push({ pointer, message });
}

/** A key as a token of a JSON Pointer (RFC 6901); a very long one is cut, since it is the client's and may be anything. */
export function escapeKey(key: string): string {
  const short = key.length > maxKeyChars ? `${key.slice(0, maxKeyChars)}…`.toWellFormed() : key;
  return short.replaceAll('~', '~0').replaceAll('/', '~1');
}
