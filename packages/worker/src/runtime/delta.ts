import { toStorable } from '@turnkeep/shared/contract/text';

/**
 * Makes the pieces of one text whole again: a provider may cut between the two halves of a surrogate pair, and a delta is
 * never split inside a character (contract section 4). What is left alone, and U+0000, becomes U+FFFD (section 8).
 */
export class DeltaMender {
  #held = '';

  /** What can go out now; may be empty. */
  push(delta: string): string {
    const text = this.#held + delta;
    const cut = /[\uD800-\uDBFF]$/.test(text) ? text.length - 1 : text.length;
    this.#held = text.slice(cut);
    return toStorable(text.slice(0, cut));
  }

  /** What is still held when the text ends: nothing, or one U+FFFD. */
  end(): string {
    const rest = toStorable(this.#held);
    this.#held = '';
    return rest;
  }
}

/** At most this many UTF-16 units a delta: in JSON each may become six bytes, and an event holds 64 KiB. */
const MAX_DELTA_UNITS = 8_000;

/** The text in deltas that fit into an event each; none is split inside a character. (contract section 4, 64 KiB) */
export function splitDelta(text: string): string[] {
  const deltas: string[] = [];
  for (let at = 0; at < text.length; ) {
    const end = at + MAX_DELTA_UNITS;
    const splitsPair = end < text.length && /[\uD800-\uDBFF]/.test(text[end - 1]!);
    const next = splitsPair ? end - 1 : end;
    deltas.push(text.slice(at, next));
    at = next;
  }
  return deltas;
}
