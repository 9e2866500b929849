/** How much is measured: 1 for figures to be believed, less for a look. */
export class Scale {
  readonly #factor: number;

  constructor(factor: number) {
    this.#factor = factor;
  }

  /** So many of what are `count` at full scale, at least `least`. */
  of(count: number, least = 1): number {
    return Math.max(least, Math.round(count * this.#factor));
  }
}

/** Runs `work` `count` times, at most `atOnce` of them at a time, and answers how many came through in a second. */
export async function perSecond(count: number, atOnce: number, work: () => Promise<unknown>): Promise<number> {
  let left = count;
  const start = performance.now();
  const loop = async () => {
    while (left > 0) {
      left -= 1;
      await work();
    }
  };
  await Promise.all(Array.from({ length: atOnce }, loop));
  return (count / (performance.now() - start)) * 1000;
}

/** The mean rate of rounds of the same size. */
export function meanRate(rates: number[]): number {
  return rates.length / rates.reduce((sum, rate) => sum + 1 / rate, 0);
}
