import { atLeast, atMost, figure, type Row, times } from '../report.js';
import { Samples } from '../samples.js';
import type { Sides } from '../sides.js';
import { startDispatchParts } from './dispatch-parts.js';
import { meanRate, perSecond, type Scale } from './scale.js';
import { type Work, workOf } from './work.js';

/** A model that answers at once. */
const TEXT = 'say 3 every 0';
const AT_ONCE = 16;
const ROUNDS = 4;
const TURN_MS = 15;

/** Whole turns with a model that answers at once, one at a time and sixteen at once, and the dispatch in them. */
export async function measureTurns(sides: Sides, scale: Scale): Promise<Row[]> {
  const parts = await startDispatchParts(sides);
  try {
    await latencies(sides, parts.once, scale.of(80, 10));
    const { dispatch, bareDispatch, turn, bareTurn } = await latencies(sides, parts.once, scale.of(400, 20));
    const dispatchRatio = dispatch.median / bareDispatch.median;
    return [
      {
        name: '`message-queued` → `execution-started`, by the sum of its bare parts',
        ...columns(dispatch, bareDispatch),
        target: atMost(5, dispatchRatio),
        aim: atMost(3, dispatchRatio),
      },
      {
        name: 'whole turn, by the bare composite',
        ...columns(turn, bareTurn),
        aim: { text: `≤ ${TURN_MS} ms`, holds: turn.median <= TURN_MS },
      },
      ...(await throughput(sides, scale)),
    ];
  } finally {
    await parts.stop();
  }
}

async function latencies({ product, bare }: Sides, dispatchParts: () => Promise<number>, count: number) {
  const samples = {
    dispatch: new Samples(),
    bareDispatch: new Samples(),
    turn: new Samples(),
    bareTurn: new Samples(),
  };
  for (let i = 0; i < count; i += 1) {
    const ours = await product.turn(TEXT);
    samples.dispatch.add(ours.startedAt - ours.queuedAt);
    samples.turn.add(ours.doneAt - ours.sentAt);
    samples.bareDispatch.add(await dispatchParts());
    const theirs = await bare.turn(TEXT);
    samples.bareTurn.add(theirs.doneAt - theirs.sentAt);
  }
  return samples;
}

function columns(product: Samples, bare: Samples) {
  const result = `${figure(product.median / bare.median)}×`;
  return { n: product.size, product: times(product), bare: times(bare), result };
}

async function throughput(sides: Sides, scale: Scale): Promise<Row[]> {
  const count = scale.of(320, 64);
  const rates = { product: [] as number[], bare: [] as number[] };
  const works = { product: [] as Work[], bare: [] as Work[] };
  for (let round = 0; round < ROUNDS + 1; round += 1) {
    for (const side of ['product', 'bare'] as const) {
      const { result, work } = await workOf(sides, () => perSecond(count, AT_ONCE, () => sides[side].turn(TEXT)));
      // The first round warms up.
      if (round === 0) continue;
      rates[side].push(result);
      works[side].push(work);
    }
  }
  const ratio = meanRate(rates.product) / meanRate(rates.bare);
  const n = ROUNDS * count;
  const rate: Row = {
    name: `turns/s, ${AT_ONCE} sessions at once, by the bare composite`,
    n,
    product: `${figure(meanRate(rates.product))} /s`,
    bare: `${figure(meanRate(rates.bare))} /s`,
    result: `${figure(ratio)}×`,
    target: atLeast(1 / 3, ratio, '⅓'),
    aim: atLeast(1 / 2, ratio, '½'),
  };
  return [rate, ...workRows(works, n)];
}

function workRows(works: Record<'product' | 'bare', Work[]>, turns: number): Row[] {
  const names: [keyof Work, string][] = [
    ['redisCommands', 'Redis commands a turn'],
    ['redisBytes', 'bytes sent to Redis a turn'],
    ['transactions', 'Postgres transactions a turn'],
    ['walBytes', 'bytes of write-ahead log a turn'],
  ];
  return names.map(([key, name]) => {
    const [product, bare] = [works.product, works.bare].map(
      (all) => all.reduce((sum, one) => sum + one[key], 0) / turns,
    );
    const result = `${figure((product ?? 0) / (bare ?? 0))}×`;
    return { name, n: turns, product: figure(product ?? 0), bare: figure(bare ?? 0), result };
  });
}
