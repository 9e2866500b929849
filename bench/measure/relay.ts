import type { LoadClient } from '../load/client.js';
import { atLeast, figure, type Row, times } from '../report.js';
import { Samples } from '../samples.js';
import type { Sides } from '../sides.js';
import { meanRate, type Scale } from './scale.js';

const ADDED_MS = 5;
const CROWD = 100;
const CROWD_ADDED_MS = 10;
const CROWD_P99_MS = 100;
const BURSTS = 8;

/** From a model's chunk to the client's event, beside the bare chain of streamed request, XADD, XREAD and SSE. */
export async function measureRelay(sides: Sides, scale: Scale): Promise<Row[]> {
  return [await alone(sides, scale), await crowd(sides, scale), await burst(sides, scale)];
}

async function alone({ product, bare }: Sides, scale: Scale): Promise<Row> {
  const [ours, theirs] = [new Samples(), new Samples()];
  for (let round = 0; round < scale.of(10, 2); round += 1) {
    const text = 'say 60 every 10';
    for (const [client, samples] of [
      [product, ours],
      [bare, theirs],
    ] as const) {
      const { delays } = await client.turn(text);
      if (round > 0) samples.add(...delays);
    }
  }
  const added = ours.median - theirs.median;
  return {
    name: 'model chunk → client event, one session of 100 chunks/s, by the bare chain',
    ...columns(ours, theirs),
    result: `+${figure(added)} ms`,
    target: { text: `≤ +${ADDED_MS} ms`, holds: added <= ADDED_MS },
  };
}

async function crowd({ product, bare }: Sides, scale: Scale): Promise<Row> {
  const [ours, theirs] = [new Samples(), new Samples()];
  const inSnapshots: number[] = [];
  const chunks = scale.of(100, 25);
  for (const [client, samples] of [
    [product, ours],
    [bare, theirs],
  ] as const)
    inSnapshots.push(await stream(client, samples, chunks));
  const added = ours.median - theirs.median;
  const isFast = ours.p99 <= Math.max(CROWD_P99_MS, 2 * theirs.p99);
  const [late = 0] = inSnapshots;
  const isWhole = ours.size + late === CROWD * chunks;
  return {
    name: `the same, ${CROWD} sessions of 25 chunks/s each; none lost`,
    ...columns(ours, theirs),
    result: `+${figure(added)} ms${late > 0 ? `, ${late} by snapshot` : ''}${isWhole ? '' : ', **some lost**'}`,
    aim: {
      text: `≤ +${CROWD_ADDED_MS} ms, p99 ≤ ${CROWD_P99_MS} ms or 2×`,
      holds: added <= CROWD_ADDED_MS && isFast && isWhole,
    },
  };
}

/** All sessions begin within a second, as they would of themselves. Answers how many chunks came by snapshot. */
async function stream(client: LoadClient, samples: Samples, chunks: number): Promise<number> {
  const turns = Array.from({ length: CROWD }, async (_, index) => {
    await new Promise((resolve) => setTimeout(resolve, (index * 1_000) / CROWD));
    const { delays, inSnapshots } = await client.turn(`say ${chunks} every 40`);
    samples.add(...delays);
    return inSnapshots;
  });
  return (await Promise.all(turns)).reduce((sum, count) => sum + count, 0);
}

async function burst({ product, bare }: Sides, scale: Scale): Promise<Row> {
  const chunks = scale.of(2_000, 200);
  const rates = { product: [] as number[], bare: [] as number[] };
  for (let round = 0; round < 4; round += 1)
    for (const [client, all] of [
      [product, rates.product],
      [bare, rates.bare],
    ] as const) {
      const start = performance.now();
      await Promise.all(Array.from({ length: BURSTS }, () => client.turn(`say ${chunks} every 0`)));
      if (round > 0) all.push((BURSTS * chunks * 1_000) / (performance.now() - start));
    }
  const ratio = meanRate(rates.product) / meanRate(rates.bare);
  return {
    name: `model chunks/s through one worker and one main, ${BURSTS} sessions, by the bare chain`,
    n: 3 * BURSTS * chunks,
    product: `${figure(meanRate(rates.product))} /s`,
    bare: `${figure(meanRate(rates.bare))} /s`,
    result: `${figure(ratio)}×`,
    aim: atLeast(1 / 2, ratio, '½'),
  };
}

function columns(product: Samples, bare: Samples) {
  return { n: product.size, product: times(product), bare: times(bare) };
}
