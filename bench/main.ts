// `npm run bench`: starts both sides, measures, and prints a table in Markdown. Options: `--only=acceptance,turns,relay`, and
// `--scale=0.2` for a quick look, `--profile=FOLDER` for CPU profiles. It ends
// with 0 whatever the figures are: they are for people to judge.
import { parseArgs } from 'node:util';
import { dropTemplate } from '../test/support/postgres.js';
import { describeMachine } from './machine.js';
import { measureAcceptance } from './measure/acceptance.js';
import { measureRelay } from './measure/relay.js';
import { Scale } from './measure/scale.js';
import { measureTurns } from './measure/turn.js';
import { type Row, table } from './report.js';
import { type Sides, startSides } from './sides.js';

const MEASURES: Record<string, (sides: Sides, scale: Scale) => Promise<Row[]>> = {
  acceptance: measureAcceptance,
  turns: measureTurns,
  relay: measureRelay,
};

const { values } = parseArgs({
  // pnpm hands on the `--` that stands before the options.
  args: process.argv.slice(2).filter((argument) => argument !== '--'),
  options: { only: { type: 'string' }, scale: { type: 'string', default: '1' }, profile: { type: 'string' } },
});
const wanted = values.only?.split(',') ?? Object.keys(MEASURES);
const scale = new Scale(Number(values.scale));
const sides = await startSides(values.profile);
try {
  const machine = await describeMachine(sides.pool, sides.redis);
  const rows: Row[] = [];
  for (const name of wanted) {
    const measure = MEASURES[name];
    if (!measure) throw new Error(`there is no measure '${name}': choose of ${Object.keys(MEASURES).join(', ')}`);
    console.error(`measuring ${name} …`);
    rows.push(...(await measure(sides, scale)));
  }
  console.log(`\n${machine.join('\n')}\n\n${table(rows)}\n\nTimes are median / p99.`);
} finally {
  await sides.stop();
  await dropTemplate();
}
