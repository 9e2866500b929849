import { randomBytes, randomInt } from 'node:crypto';

let lastMs = 0;
let counter = 0;

/**
 * A new UUID version 7 (RFC 9562, section 6.2, method 1): 48 bits of Unix time in ms, a 12-bit counter, 62 random bits. Each id of
 * a process sorts after the one before it, also within a millisecond and when the clock is set back. The counter starts in its
 * lower half, so at least 2,048 ids fit into a millisecond before the time part runs ahead of the clock.
 */
export function newId(): string {
  tick(Date.now());
  const bytes = randomBytes(16);
  bytes.writeUIntBE(lastMs, 0, 6);
  bytes[6] = 0x70 | (counter >> 8);
  bytes[7] = counter & 0xff;
  bytes[8] = 0x80 | (bytes[8]! & 0x3f);
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** Moves the time part and the counter on, so that the pair rises strictly. */
function tick(nowMs: number): void {
  if (nowMs <= lastMs && counter < 0xfff) {
    counter++;
    return;
  }
  lastMs = Math.max(nowMs, lastMs + 1);
  counter = randomInt(0x800);
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** True for the text form of a UUID of any version, in lower or upper case. Callers lower-case it before they compare it. */
export function isUuid(text: string): boolean {
  return uuid.test(text);
}
