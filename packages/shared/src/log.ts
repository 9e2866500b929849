import pino from 'pino';

/** A structured log. Never hand it a token, a credential or a message's text (contract, section 1). */
export type Log = pino.Logger;

/**
 * JSON lines on standard output. `process` says which of the processes speaks.
 * Errors are logged by their type, code and message alone: a driver's error may hold the values of a statement.
 */
export function createLog(process: string, level: string): Log {
  return pino({
    level,
    base: { process, pid: globalThis.process.pid },
    serializers: { error: describeError, err: describeError },
  });
}

function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return { type: typeof error };
  const { code } = error as NodeJS.ErrnoException;
  const where = error.stack
    ?.split('\n')
    .slice(1, 6)
    .map((line) => line.trim());
  return { type: error.name, message: error.message, code, where, cause: error.cause && describeError(error.cause) };
}
