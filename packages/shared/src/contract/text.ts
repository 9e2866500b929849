/// <reference lib="es2024.string" />
/**
 * Text as Postgres can store it. Section 8: U+0000 and lone surrogates are refused in requests and replaced by U+FFFD in what
 * models and tools say; everything else comes back exactly as it went in, so nothing here normalises.
 */

const replacement = '\uFFFD';

/** True where the text holds neither U+0000 nor a lone surrogate (section 8). */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** The same text with U+FFFD in place of each U+0000 and lone surrogate (section 8). */
export function toStorable(text: string): string {
  return isStorable(text) ? text : text.toWellFormed().replaceAll('\0', replacement);
}

/** True where every string of a JSON value, keys included, is storable. The value must not refer to itself. */
export function isStorableJson(value: unknown): boolean {
  if (typeof value === 'string') return isStorable(value);
  if (Array.isArray(value)) return value.every(isStorableJson);
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, inner]) => isStorable(key) && isStorableJson(inner));
}

/**
 * A copy of a JSON value in which every string, keys included, is storable; the value itself where it already is. Keys that
 * become equal by it keep the last value.
 */
export function toStorableJson<T>(value: T): T {
  return isStorableJson(value) ? value : (mended(value) as T);
}

// Object.fromEntries defines properties, so a key `__proto__` stays a key and sets no prototype.
function mended(value: unknown): unknown {
  if (typeof value === 'string') return toStorable(value);
  if (Array.isArray(value)) return value.map(mended);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [toStorable(key), mended(inner)]));
}

/** The number of code points (not UTF-16 units) of a text; a lone surrogate counts as one. */
export function countCodePoints(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += widthAt(text, at)) count++;
  return count;
}

/** The first `n` code points of a text, or all of it where it is shorter. Never splits a surrogate pair. */
export function takeCodePoints(text: string, n: number): string {
  if (text.length <= n) return text;
  let at = 0;
  for (let taken = 0; taken < n && at < text.length; taken++) at += widthAt(text, at);
  return text.slice(0, at);
}

/** How many UTF-16 units the code point at `index` takes: 1 or 2. */
function widthAt(text: string, index: number): 1 | 2 {
  return (text.codePointAt(index) ?? 0) > 0xffff ? 2 : 1;
}
