import { isUuid } from '@turnkeep/shared/contract/ids';
import { ProblemError } from '@turnkeep/shared/contract/problems';

/** The one 404 of the contract's section 2: the same body for what is not there and for what is not yours. */
export function notFound(): ProblemError {
  return new ProblemError('not_found', 'There is nothing here, or it is not yours.');
}

/** The value, or a 404 where it is null, undefined or false. */
export function found<T>(value: T | null | undefined | false): T {
  if (value === null || value === undefined || value === false) throw notFound();
  return value;
}

/** A UUID of a path in lower case, or null: what is no UUID is nothing's id. */
export function pathId(text: string | undefined): string | null {
  return text !== undefined && isUuid(text) ? text.toLowerCase() : null;
}
