/** The time for a piece of work is over. */
export class TimedOut extends Error {
  override readonly name = 'TimedOut';
}

/**
 * Does `work` until it is done, `timeoutMs` have passed (`TimedOut`) or the abort signal fires (its reason), and in the last two
 * cases answers at once, whatever the work does. The signal that the work gets fires when it is no longer wanted.
 */
export async function within<T>(
  timeoutMs: number,
  abortSignal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  abortSignal.throwIfAborted();
  const controller = new AbortController();
  let onAbort = () => {};
  let timer: NodeJS.Timeout | undefined;
  const stopped = new Promise<never>((_, reject) => {
    const stop = (reason: unknown) => {
      reject(reason);
      controller.abort(reason);
    };
    onAbort = () => stop(abortSignal.reason);
    timer = setTimeout(() => stop(new TimedOut(`Nothing within ${timeoutMs} ms.`)), timeoutMs);
  });
  abortSignal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work(controller.signal), stopped]);
  } finally {
    clearTimeout(timer);
    abortSignal.removeEventListener('abort', onAbort);
  }
}
