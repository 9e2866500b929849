import type { ExecutionEvent } from '@turnkeep/shared/contract/events';

/** No event is larger than 64 KiB (contract, section 4); this is what an input or output may take of it, in bytes. */
const VALUE_BYTES = 60_000;
/** Characters that a preview begins with; each takes at most six bytes in JSON. */
const PREVIEW_CHARS = 60_000;

/** An event as one line of JSON. */
export function eventLine(event: ExecutionEvent): string {
  return JSON.stringify(event);
}

/**
 * The beginning of a value's JSON, where the value is too long for an event; null where it is not. As a string in an event's
 * JSON it takes at most `VALUE_BYTES`, and never ends inside a character.
 */
export function preview(json: string): string | null {
  if (json.length <= VALUE_BYTES && Buffer.byteLength(json) <= VALUE_BYTES) return null;
  let text = whole(json.slice(0, PREVIEW_CHARS));
  for (let bytes = escapedBytes(text); bytes > VALUE_BYTES; bytes = escapedBytes(text))
    text = whole(text.slice(0, Math.floor((text.length * VALUE_BYTES) / bytes)));
  return text;
}

function escapedBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text));
}

function whole(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text;
}
