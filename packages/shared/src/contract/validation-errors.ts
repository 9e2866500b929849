import type { ErrorObject } from 'ajv/dist/2020.js';
import { escapeKey, maxErrors } from './inspect.js';
import type { FieldError } from './problems.js';
import { toStorable } from './text.js';

/**
 * ajv's errors as the contract's: a pointer and a message for each, at most 20, each once. Where a value fits no branch of a
 * union, the errors of the branch that it comes closest to are kept. A message never holds a value of the request.
 */
export function fieldErrors(errors: readonly ErrorObject[] | null | undefined): FieldError[] {
  const unique = new Map<string, FieldError>();
  for (const error of closestBranches(errors ?? [])) {
    const field = fieldError(error);
    unique.set(`${field.pointer} ${field.message}`, field);
    if (unique.size === maxErrors) break;
  }
  return [...unique.values()];
}

function fieldError(error: ErrorObject): FieldError {
  const { instancePath, keyword, params } = error;
  switch (keyword) {
    case 'required':
      return { pointer: `${instancePath}/${escapeKey(String(params.missingProperty))}`, message: 'is required' };
    case 'additionalProperties':
      return {
        pointer: `${instancePath}/${escapeKey(toStorable(params.additionalProperty))}`,
        message: 'is not a known property',
      };
    case 'discriminator':
      return { pointer: `${instancePath}/${params.tag}`, message: 'must name one of the known types' };
    case 'enum':
      return { pointer: instancePath, message: `must be one of ${params.allowedValues.join(', ')}` };
    case 'const':
      return { pointer: instancePath, message: `must be ${JSON.stringify(params.allowedValue)}` };
    default:
      return { pointer: instancePath, message: error.message ?? 'is not valid' };
  }
}

/** Drops, for each union that failed, the errors of all branches but the one with the fewest. */
function closestBranches(errors: readonly ErrorObject[]): ErrorObject[] {
  let kept = [...errors];
  for (const union of errors.filter((error) => error.keyword === 'anyOf')) {
    const closest = closestBranch(
      kept.filter((error) => isBranchError(error, union)),
      union,
    );
    if (closest.length === 0) continue;
    kept = kept.filter((error) => error !== union && (!isBranchError(error, union) || closest.includes(error)));
  }
  return kept;
}

function closestBranch(errors: readonly ErrorObject[], union: ErrorObject): ErrorObject[] {
  const branches = new Map<string, ErrorObject[]>();
  for (const error of errors) {
    const branch = branchOf(error, union);
    branches.set(branch, [...(branches.get(branch) ?? []), error]);
  }
  return [...branches.values()].reduce((best, next) => (next.length < best.length ? next : best), [...errors]);
}

function isBranchError(error: ErrorObject, union: ErrorObject): boolean {
  return error.schemaPath.startsWith(`${union.schemaPath}/`) && error.instancePath.startsWith(union.instancePath);
}

function branchOf(error: ErrorObject, union: ErrorObject): string {
  return error.schemaPath.slice(union.schemaPath.length + 1).split('/', 1)[0] ?? '';
}
