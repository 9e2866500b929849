import { createHash } from 'node:crypto';

/**
 * A place in an execution's events. `n` is the number of an event; `sub` counts what a main adds after it by itself (the
 * repeated start of a text that is under way after a snapshot).
 */
export interface Cursor {
  n: number;
  sub: number;
}

const SUBS = 10;
const DIGITS = 16;

/**
 * A cursor as a client sees it (contract, section 4): opaque, rising strictly within an execution also where it is compared
 * as text, and marked with its execution, so that another's counts as none.
 */
export function formatCursor(executionId: string, { n, sub }: Cursor): string {
  return `${String(n * SUBS + sub).padStart(DIGITS, '0')}-${markOf(executionId)}`;
}

/** Reads a cursor; null where it is no cursor of this execution. */
export function parseCursor(executionId: string, text: string | undefined): Cursor | null {
  const match = /^(\d{16})-(\d{10})$/.exec(text ?? '');
  if (!match || match[2] !== markOf(executionId)) return null;
  const number = Number(match[1]);
  if (!Number.isSafeInteger(number)) return null;
  return { n: Math.floor(number / SUBS), sub: number % SUBS };
}

/** How many sub-numbers an event has for what a main adds after it. */
export const MAX_SUB = SUBS - 1;

function markOf(executionId: string): string {
  const digest = createHash('sha256').update(executionId).digest();
  return String(digest.readUInt32BE(0)).padStart(10, '0');
}
