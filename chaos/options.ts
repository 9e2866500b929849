import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { BROKEN, type BrokenName } from './product/broken.js';

export interface Options {
  /** How long faults go on, in ms; over all rounds. */
  readonly faultsMs: number;
  /** How many operations the clients make at most. */
  readonly operations: number;
  readonly seed: string;
  readonly quiet: boolean;
  /** A build that is broken on purpose; `all`: the checker is checked with each of them. */
  readonly broken: BrokenName | 'all' | null;
  /** Where the report is written as Markdown beside what is printed. */
  readonly report: string | null;
  /** Keeps the history and the logs, also of a run without violations. */
  readonly keep: boolean;
}

/**
 * Reads the options of `npm run chaos`.
 * @throws Error with one line for a person where an option is unknown or malformed
 */
export function readOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: 'string' },
      operations: { type: 'string' },
      seed: { type: 'string' },
      quiet: { type: 'boolean', default: false },
      broken: { type: 'string' },
      report: { type: 'string' },
      keep: { type: 'boolean', default: false },
    },
  });
  const minutes = values.minutes ?? (values.operations === undefined ? '2' : undefined);
  return {
    faultsMs: minutes === undefined ? Number.POSITIVE_INFINITY : positive('--minutes', minutes) * 60_000,
    operations:
      values.operations === undefined ? Number.POSITIVE_INFINITY : positive('--operations', values.operations),
    seed: values.seed ?? randomBytes(4).toString('hex'),
    quiet: values.quiet,
    broken: brokenName(values.broken),
    report: values.report ?? null,
    keep: values.keep,
  };
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new Error(`${name} must be a number above 0, not '${text}'.`);
  return value;
}

function brokenName(text: string | undefined): BrokenName | 'all' | null {
  if (text === undefined) return null;
  const names = [...(Object.keys(BROKEN) as BrokenName[]), 'all' as const];
  const name = names.find((one) => one === text);
  if (name === undefined) throw new Error(`--broken is one of ${names.join(', ')}, not '${text}'.`);
  return name;
}
