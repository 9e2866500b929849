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
