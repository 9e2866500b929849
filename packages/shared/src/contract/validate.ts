/**
 * Checking values against the schemas of the contract. Besides the schema, a value must be storable text throughout and not be
 * nested without end. Errors carry a JSON Pointer and never the offending value (sections 3 and 8: it may be a credential).
 */
import { Ajv2020, type Format, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { Static, TSchema } from 'typebox';
import { isUuid } from './ids.js';
import { inspect } from './inspect.js';
import { type FieldError, ProblemError } from './problems.js';
import { definitionsByName } from './schema.js';
import { fieldErrors } from './validation-errors.js';

export type { FieldError } from './problems.js';
export type Checked<T> = { ok: true; value: T } | { ok: false; errors: FieldError[] };
export type Validator<T> = (value: unknown) => Checked<T>;

/** Above this many values in a body only its first error is reported: ajv would allocate an error for each one. */
const maxValuesForAllErrors = 10_000;

const quickAjv = createAjv(false);
const thoroughAjv = createAjv(true);

/**
 * Compiles a schema, once, into a function that checks a JSON value. It answers `{ok: true, value}` with the very same value
 * (nothing is coerced or filled in), or `{ok: false, errors}` with 1 to 20 errors. Throws where the schema itself is not valid.
 */
export function compile<S extends TSchema>(schema: S): Validator<Static<S>>;
export function compile<T>(schema: TSchema): Validator<T>;
export function compile(schema: TSchema): Validator<unknown> {
  const root = { ...schema, $defs: definitionsByName() };
  const quick = quickAjv.compile(root);
  let thorough: ValidateFunction | undefined;
  return (value) => {
    const seen = inspect(value);
    if (seen.errors.length > 0) return { ok: false, errors: seen.errors };
    if (quick(value)) return { ok: true, value };
    if (seen.values > maxValuesForAllErrors) return { ok: false, errors: fieldErrors(quick.errors) };
    thorough ??= thoroughAjv.compile(root);
    thorough(value);
    return { ok: false, errors: fieldErrors(thorough.errors) };
  };
}

/** The checked value; else throws `ProblemError` `invalid_request` with the errors (section 8). `what` names it: "The body". */
export function accept<T>(checked: Checked<T>, what: string): T {
  if (checked.ok) return checked.value;
  throw new ProblemError('invalid_request', `${what} is not valid.`, { errors: checked.errors });
}

// `email` and `date-time` come from ajv-formats. Its `uuid` lets `urn:uuid:` through, and its `byte` is a backtracking
// expression that overflows V8's stack on megabytes, so those two are ours.
function createAjv(allErrors: boolean): Ajv2020 {
  return new Ajv2020({
    allErrors,
    strict: true,
    discriminator: true,
    formats: {
      uuid: isUuid,
      base64: isBase64,
      email: formats.default.get('email') as Format,
      'date-time': formats.default.get('date-time') as Format,
    },
  });
}

/** Padded base64 (RFC 4648, section 4) without line breaks, checked in one pass. */
function isBase64(text: string): boolean {
  if (text.length % 4 !== 0) return false;
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  return !/[^A-Za-z0-9+/]/.test(padding === 0 ? text : text.slice(0, -padding));
}
