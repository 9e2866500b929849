/** Errors as a client sees them: section 8, RFC 9457. */
import Type, { type Static } from 'typebox';
import { open } from './schema.js';

/** Every problem code of the contract with its HTTP status and title. The one place where either stands. */
const table = {
  invalid_request: { status: 400, title: 'The request is not valid' },
  unauthorized: { status: 401, title: 'Sign in first' },
  forbidden: { status: 403, title: 'Not allowed' },
  not_found: { status: 404, title: 'Not found' },
  agents_disabled: { status: 404, title: 'Agents are switched off' },
  last_admin: { status: 409, title: 'A project keeps at least one admin' },
  execution_running: { status: 409, title: 'An execution is running' },
  item_started: { status: 409, title: 'The message is no longer in the queue' },
  item_reserved: { status: 409, title: 'The message is reserved for the running turn' },
  queue_changed: { status: 409, title: 'The queue has changed' },
  execution_not_steerable: { status: 409, title: 'The execution takes no steers' },
  suspension_resolved: { status: 409, title: 'Already answered' },
  payload_too_large: { status: 413, title: 'Too large' },
  unsupported_media_type: { status: 415, title: 'Unsupported media type' },
  idempotency_mismatch: { status: 422, title: 'The idempotency key belongs to another request' },
  queue_full: { status: 429, title: 'The queue is full' },
  too_many_streams: { status: 429, title: 'Too many open streams' },
  internal: { status: 500, title: 'Internal error' },
  unavailable: { status: 503, title: 'Unavailable' },
} as const;

export type ProblemCode = keyof typeof table;
export const problemCodes = Object.keys(table) as ProblemCode[];
export const ProblemCode = Type.Enum(problemCodes, { title: 'ProblemCode' });

/** The HTTP status of each code (section 8 and the sections that name the code). */
export const statusOf: Readonly<Record<ProblemCode, number>> = pick('status');
/** A short title of each code; the same for every occurrence. */
export const titleOf: Readonly<Record<ProblemCode, string>> = pick('title');

export type FieldError = Static<typeof FieldError>;
export const FieldError = open('FieldError', {
  pointer: Type.String({ description: 'JSON Pointer (RFC 6901) into the request; "" is the whole of it.' }),
  message: Type.String({ description: 'What is wrong there. Never the value itself.' }),
});

export type Problem = Static<typeof Problem>;
export const Problem = open(
  'Problem',
  {
    type: Type.String({ description: 'urn:turnkeep:problem:<code>' }),
    title: Type.String(),
    status: Type.Integer(),
    code: ProblemCode,
    detail: Type.String({ description: 'What happened, written for the client.' }),
    errors: Type.Optional(Type.Array(FieldError, { description: 'At most 20, for a request that fails its schema.' })),
  },
  'application/problem+json, RFC 9457.',
);

type ProblemOptions = { errors?: FieldError[]; retryAfterS?: number; cause?: unknown };

/**
 * An error that a client may see. `detail` is written for the client: it holds no stack, SQL, inner address or value of a
 * credential (section 8). `retryAfterS` becomes the `Retry-After` header, in seconds. `cause` goes to the log alone.
 */
export class ProblemError extends Error {
  readonly code: ProblemCode;
  readonly detail: string;
  readonly errors?: FieldError[];
  readonly retryAfterS?: number;

  constructor(code: ProblemCode, detail: string, options: ProblemOptions = {}) {
    super(`${code}: ${detail}`, 'cause' in options ? { cause: options.cause } : undefined);
    this.name = 'ProblemError';
    this.code = code;
    this.detail = detail;
    if (options.errors !== undefined) this.errors = options.errors;
    if (options.retryAfterS !== undefined) this.retryAfterS = options.retryAfterS;
  }
}

/** The response body for anything thrown. What is no `ProblemError` says nothing of itself: it becomes `internal`. */
export function toProblem(error: unknown): Problem {
  const known =
    error instanceof ProblemError ? error : new ProblemError('internal', 'Something went wrong on our side.');
  return {
    type: `urn:turnkeep:problem:${known.code}`,
    title: titleOf[known.code],
    status: statusOf[known.code],
    code: known.code,
    detail: known.detail,
    ...(known.errors === undefined ? {} : { errors: known.errors }),
  };
}

function pick<K extends 'status' | 'title'>(key: K) {
  return Object.fromEntries(problemCodes.map((code) => [code, table[code][key]])) as Record<
    ProblemCode,
    (typeof table)[ProblemCode][K]
  >;
}
