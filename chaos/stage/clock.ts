/** Milliseconds since 1970, with fractions: comparable with the clock of a Postgres on this machine. */
export function now(): number {
  return performance.timeOrigin + performance.now();
}

/** Resolves after so many ms, or at once when the signal is given. */
export function sleep(ms: number, ended?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (ended?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      ended?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    ended?.addEventListener('abort', done, { once: true });
  });
}
