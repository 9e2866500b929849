// The chaos run (`npm run chaos`): clients, a nemesis and a checker; see docs/chaos-report.md. Ends with 1 where it found
// a violation, or where a build that is broken on purpose got through.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { required } from '../test/support/environment.js';
import { killLeftovers } from '../test/support/processes.js';
import type { Violation } from './history.js';
import { type Options, readOptions } from './options.js';
import { BROKEN, type BrokenName, type Patch } from './product/broken.js';
import { copyRelease } from './product/release.js';
import { Random } from './random.js';
import { add, markdown, newSummary, roundLine, type Summary } from './report.js';
import { playRound, type RoundResult } from './round.js';
import { abandon } from './stage/notes.js';
import { startStage } from './stage/stage.js';

/** A longer run is played in rounds, each judged by itself, so that it holds no history of hours. */
const ROUND_MS = 180_000;
/** How long a broken build has to show itself. */
const BROKEN_MS = 60_000;

const ending = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => ending.abort());
process.on('disconnect', abandon);

process.exitCode = await main(readOptions(process.argv.slice(2))).catch((error: unknown) => {
  console.error(error);
  return 1;
});
await killLeftovers();
process.off('disconnect', abandon);
process.disconnect?.();

async function main(options: Options): Promise<number> {
  if (options.broken === 'all') return checkTheChecker(options);
  const summary = await play(options, options.broken === null ? [] : BROKEN[options.broken]);
  const text = markdown(summary);
  if (options.report) writeFileSync(options.report, text);
  say(options, text);
  const { violations, operations, seed } = summary;
  console.log(
    `chaos: ${operations} operations, ${total(summary.faults)} faults, ${violations.length} violations, seed ${seed}`,
  );
  return violations.length > 0 ? 1 : 0;
}

/** Plays each broken build until the checker sees it; 1 where one gets through. */
async function checkTheChecker(options: Options): Promise<number> {
  let missed = 0;
  for (const name of Object.keys(BROKEN) as BrokenName[]) {
    const { violations } = await play(
      { ...options, faultsMs: Math.min(options.faultsMs, BROKEN_MS), keep: false },
      BROKEN[name],
    );
    const rules = [...new Set(violations.map(({ rule }) => rule))];
    if (violations.length === 0) missed += 1;
    console.log(`${name}: ${violations.length === 0 ? 'not seen' : `caught (${rules.join('; ')})`}`);
  }
  return missed > 0 ? 1 : 0;
}

async function play(options: Options, patches: readonly Patch[]): Promise<Summary> {
  const folder = mkdtempSync(join(required('TURNKEEP_CHAOS_FOLDER'), 'run-'));
  chmodSync(folder, 0o755); // Postgres, started by root, runs as a user of its own.
  const summary = newSummary(options.seed);
  const stage = await startStage(folder, copyRelease(join(folder, 'product'), patches));
  try {
    let { faultsMs, operations } = options;
    for (let round = 1; faultsMs > 0 && operations > 0 && !ending.signal.aborted; round += 1) {
      const random = new Random(`${options.seed}/${round}`);
      const limits = { faultsMs: Math.min(faultsMs, ROUND_MS), operations, ended: ending.signal };
      const result = await playRound(stage, String(round), random, limits);
      add(summary, result);
      say(options, roundLine(result));
      if (result.violations.length > 0 || options.keep) keep(folder, result);
      if (result.violations.length > 0) break;
      faultsMs -= ROUND_MS;
      operations -= result.operations;
    }
  } finally {
    await stage.stop();
  }
  rmSync(join(folder, 'product'), { recursive: true, force: true });
  const isWanted = (summary.violations.length > 0 && patches.length === 0) || options.keep;
  if (isWanted) console.log(`The history and the logs are in ${folder}.`);
  else rmSync(folder, { recursive: true, force: true });
  return summary;
}

/** Writes down what a round's verdict rests on. */
function keep(folder: string, { name, material, violations }: RoundResult): void {
  const { history, final, ...logs } = material;
  const whole = {
    violations: violations satisfies readonly Violation[],
    final: { ...final, deleted: [...final.deleted] },
  };
  const text = JSON.stringify({ ...whole, ...logs, transcripts: [...material.transcripts], history });
  writeFileSync(join(folder, `round-${name}.json`), text);
}

function say({ quiet }: Options, text: string): void {
  if (!quiet) console.log(text);
}

function total(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}
