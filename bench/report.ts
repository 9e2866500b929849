import type { Samples } from './samples.js';

/** What a measure is held to: a bound that the product keeps, and a tighter one that it works towards. */
export interface Bound {
  text: string;
  holds: boolean;
}

/** One line of the table. */
export interface Row {
  name: string;
  n: number;
  product: string;
  bare: string;
  /** The product's figure by the bare one's, or the difference. */
  result: string;
  target?: Bound;
  aim?: Bound;
}

/** A ratio that should not be above `limit`. */
export function atMost(limit: number, ratio: number): Bound {
  return { text: `≤ ${limit}×`, holds: ratio <= limit };
}

/** A ratio that should not be under `limit`. */
export function atLeast(limit: number, ratio: number, text: string): Bound {
  return { text: `≥ ${text}`, holds: ratio >= limit };
}

/** Times as 'median / p99'. */
export function times(samples: Samples): string {
  return `${figure(samples.median)} / ${figure(samples.p99)} ms`;
}

/** A number with as many digits as one can believe. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '–';
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en');
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}

/** The rows as a table in Markdown. */
export function table(rows: Row[]): string {
  const head = ['measure', 'n', 'Turnkeep', 'bare', 'result', 'target', 'aim'];
  const lines = rows.map(({ name, n, product, bare, result, target, aim }) => [
    name,
    n.toLocaleString('en'),
    product,
    bare,
    result,
    verdict(target),
    verdict(aim),
  ]);
  return [head, head.map((_, index) => (index === 0 || index > 4 ? '---' : '---:')), ...lines]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
}

function verdict(bound: Bound | undefined): string {
  if (!bound) return '';
  return `${bound.text}: ${bound.holds ? 'pass' : '**miss**'}`;
}
