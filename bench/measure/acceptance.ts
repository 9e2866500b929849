import { runOn } from '../bare/script.js';
import { newIds } from '../bare/turn-scripts.js';
import { nowMs } from '../clock.js';
import { atLeast, atMost, figure, type Row, times } from '../report.js';
import { Samples } from '../samples.js';
import type { Sides } from '../sides.js';
import { meanRate, perSecond, type Scale } from './scale.js';

const TEXT = 'say 3 every 0';
const AT_ONCE = 16;

/** Accepting a message, one at a time and sixteen at once, beside the same statements. */
export async function measureAcceptance(sides: Sides, scale: Scale): Promise<Row[]> {
  await latencies(sides, scale.of(100, 20));
  const { queued, accepted, statements, koa } = await latencies(sides, scale.of(500, 20));
  return [
    latencyRow('POST → `message-queued`, by the same statements with `pg` alone', queued, statements),
    latencyRow('POST → 202, by the same statements with `pg` alone', accepted, statements),
    { ...latencyRow('POST → 202, by the same statements behind a bare Koa route', accepted, koa), target: undefined },
    await throughput(sides, scale),
  ].map(withoutUndefined);
}

async function latencies({ accepting, bare, pool, scripts }: Sides, count: number) {
  const [queued, accepted, statements, koa] = [new Samples(), new Samples(), new Samples(), new Samples()];
  for (let i = 0; i < count; i += 1) {
    queued.add(await accepting.queued(TEXT));
    const start = nowMs();
    await runOn(pool, scripts.lookUp, {});
    await runOn(pool, scripts.accept, newIds(TEXT));
    statements.add(nowMs() - start);
    accepted.add(await accepting.accept(TEXT));
    koa.add(await bare.accept(TEXT));
  }
  return { queued, accepted, statements, koa };
}

function latencyRow(name: string, product: Samples, bare: Samples): Row {
  const ratio = product.median / bare.median;
  const bounds = { target: atMost(3, ratio), aim: atMost(2, ratio) };
  return { name, n: product.size, product: times(product), bare: times(bare), result: `${figure(ratio)}×`, ...bounds };
}

async function throughput({ accepting, bare }: Sides, scale: Scale): Promise<Row> {
  const [product, koa]: [number[], number[]] = [[], []];
  const count = scale.of(800, 64);
  for (let round = 0; round < 4; round += 1) {
    product.push(await perSecond(count, AT_ONCE, () => accepting.accept(TEXT)));
    koa.push(await perSecond(count, AT_ONCE, () => bare.accept(TEXT)));
  }
  const ratio = meanRate(product) / meanRate(koa);
  return {
    name: `acceptances/s, ${AT_ONCE} at once, by the same statements behind a bare Koa route`,
    n: 4 * count,
    product: `${figure(meanRate(product))} /s`,
    bare: `${figure(meanRate(koa))} /s`,
    result: `${figure(ratio)}×`,
    aim: atLeast(1 / 2, ratio, '½'),
  };
}

function withoutUndefined(row: Row | (Omit<Row, 'target'> & { target: undefined })): Row {
  const { target, ...rest } = row;
  return target ? { ...rest, target } : rest;
}
