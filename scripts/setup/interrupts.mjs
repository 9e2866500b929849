/** A Ctrl-C reaches us twice: from the terminal, and forwarded by npm. What comes so soon after is the same one. */
const sameMs = 1000;

/**
 * Calls `first` at the first Ctrl-C (or SIGTERM, or a closed terminal) and `again` at each later one.
 * @param {(signal: NodeJS.Signals) => void} first
 * @param {(signal: NodeJS.Signals) => void} again
 */
export function onInterrupt(first, again) {
  let lastAt = Number.NEGATIVE_INFINITY;
  const isFirst = () => lastAt === Number.NEGATIVE_INFINITY;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(signal, () => {
      const now = performance.now();
      if (now - lastAt < sameMs) return;
      const call = isFirst() ? first : again;
      lastAt = now;
      call(signal);
    });
}
