import type { ExecutionError } from '@turnkeep/shared/contract/execution';

/** What the user is told of turns that end for the product's own reasons (contract, section 4, `error`). */
export const INTERNAL: ExecutionError = {
  code: 'internal',
  message: 'Something went wrong on our side. Send the message again.',
};

/** The turn ran into `maxDurationMs`. */
export function timeLimit(ms: number): ExecutionError {
  return { code: 'time_limit', message: `The turn took longer than the ${ms / 1000} s that it may take.` };
}

/** The run has made its `maxSteps` model requests. */
export function stepLimit(steps: number): ExecutionError {
  return {
    code: 'step_limit',
    message: `The turn reached its limit of ${steps} model requests. Send a message to go on.`,
  };
}
