import { toStorableJson } from '@turnkeep/shared/contract/text';

export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };

/** Deeper than any honest tool nests; `JSON.stringify` and Postgres give up at a few thousand. */
const MAX_DEPTH = 500;

/**
 * Parses JSON that a model or a tool wrote and makes it storable (contract section 8). `undefined`: the text is no JSON, or
 * nests more than 500 deep.
 */
export function parseForeignJson(text: string): JsonValue | undefined {
  try {
    return storableJson(JSON.parse(text) as JsonValue);
  } catch {
    return undefined;
  }
}

/** The value with every string storable; `undefined` where it nests more than 500 deep. */
export function storableJson(value: JsonValue): JsonValue | undefined {
  return nestsWithin(value, MAX_DEPTH) ? toStorableJson(value) : undefined;
}

export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Level by level instead of recursively: a hostile answer must not exhaust the stack here either. */
function nestsWithin(value: JsonValue, maxDepth: number): boolean {
  let level: JsonValue[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > maxDepth) return false;
    const next: JsonValue[] = [];
    for (const item of level) {
      if (typeof item !== 'object' || item === null) continue;
      for (const inner of Object.values(item)) if (typeof inner === 'object' && inner !== null) next.push(inner);
    }
    level = next;
  }
  return true;
}
