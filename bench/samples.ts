/** What was measured many times over, in ms. */
export class Samples {
  readonly #values: number[] = [];
  #sorted = true;

  add(...values: number[]): void {
    for (const value of values) this.#values.push(value);
    this.#sorted = false;
  }

  get size(): number {
    return this.#values.length;
  }

  get median(): number {
    return this.quantile(0.5);
  }

  get p99(): number {
    return this.quantile(0.99);
  }

  /** The smallest value that at least `q` of all are not above; NaN where nothing was measured. */
  quantile(q: number): number {
    if (!this.#sorted) this.#values.sort((a, b) => a - b);
    this.#sorted = true;
    return this.#values[Math.max(0, Math.ceil(q * this.#values.length) - 1)] ?? Number.NaN;
  }
}
