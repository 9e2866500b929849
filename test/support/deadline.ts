/** How long a test waits for anything before it says what is missing. Generous: the machine may be busy. */
export const PATIENCE_MS = 15_000;

/**
 * Waits for `promise`, at most `ms`, and rejects with the sentence that `describe` makes at that moment: what was
 * awaited and what was seen so far.
 */
export async function within<T>(promise: Promise<T>, describe: () => string, ms = PATIENCE_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`after ${ms} ms: ${describe()}`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Asks again until `check` answers something other than `undefined` or `false`. For state that has no signal of its
 * own, such as a row that another process writes; where an event exists, wait for the event.
 */
export async function eventually<T>(
  what: string,
  check: () => Promise<T | undefined | false>,
  ms = PATIENCE_MS,
): Promise<T> {
  const end = performance.now() + ms;
  let lastError: unknown;
  for (;;) {
    try {
      const value = await check();
      if (value !== undefined && value !== false) return value;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    if (performance.now() > end) throw new Error(`after ${ms} ms: ${what}`, { cause: lastError });
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/**
 * Checks again and again for `ms` that something does not happen. Only where a bound of the contract says until when
 * it would have happened, and nothing announces that it does not.
 */
export async function never(what: string, happened: () => Promise<boolean>, ms: number): Promise<void> {
  const end = performance.now() + ms;
  while (performance.now() < end) {
    if (await happened()) throw new Error(`it happened: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** A promise with its resolve at hand. */
export function deferred<T = void>(): { promise: Promise<T>; resolve: (value: T) => void; settled: () => boolean } {
  let settle: (value: T) => void = () => {};
  let done = false;
  const promise = new Promise<T>((resolve) => {
    settle = resolve;
  });
  const resolve = (value: T) => {
    done = true;
    settle(value);
  };
  return { promise, resolve, settled: () => done };
}
