import type { History } from '../history.js';
import type { Random } from '../random.js';
import { now, sleep } from '../stage/clock.js';
import type { Slot } from '../stage/slot.js';
import { LEASE_MS, type Stage } from '../stage/stage.js';
import type { Wire } from '../stage/wire.js';

/** What a fault has to work with. Its waits end early when the faults are to end; `heal` repairs whatever it leaves. */
export interface Hand {
  readonly stage: Stage;
  readonly history: History;
  readonly random: Random;
  readonly ended: AbortSignal;
}

type FaultOf = (hand: Hand) => { target: string; run: () => Promise<void> };

/** The target of faults by which a turn may fail: the checker asks for it. */
export const MODEL = 'the model';

/** How long a process may take to stop on SIGTERM: the grace, its closing, and a machine that is busy. */
const STOP_MS = 20_000;

const slotOf = ({ stage, random }: Hand, kind?: 'main' | 'worker'): Slot =>
  random.pick([...(kind === 'worker' ? [] : stage.mains), ...(kind === 'main' ? [] : stage.workers)]);

/** Faults of the product's own processes. */
export const PROCESS_FAULTS = {
  'kill -9 of a main': (hand) => kill(hand, [slotOf(hand, 'main')]),
  'kill -9 of a worker': (hand) => kill(hand, [slotOf(hand, 'worker')]),
  'kill -9 of all workers': (hand) => kill(hand, hand.stage.workers),
  'pause, shorter than the lease': (hand) => pause(hand, slotOf(hand), hand.random.between(200, LEASE_MS - 500)),
  'pause of a worker, longer than the lease': (hand) =>
    pause(hand, slotOf(hand, 'worker'), hand.random.between(LEASE_MS + 300, 2 * LEASE_MS + 1_500)),
  'pause of a main, longer than the lease': (hand) =>
    pause(hand, slotOf(hand, 'main'), hand.random.between(LEASE_MS + 300, 2 * LEASE_MS)),
  'restart (SIGTERM)': (hand) => terminate(hand, slotOf(hand), null),
  'restart (SIGTERM twice)': (hand) => terminate(hand, slotOf(hand), hand.random.between(50, 700)),
} satisfies Record<string, FaultOf>;

/** Faults of what the processes stand on. */
export const STORE_FAULTS = {
  'kill -9 of Redis, with its data': (hand) => redisDown(hand, 'keep'),
  'kill -9 of Redis, without its data': (hand) => redisDown(hand, 'empty'),
  'restart of Redis, with its data': (hand) => at('Redis', () => hand.stage.redis.restart('keep')),
  'restart of Redis, without its data': (hand) => at('Redis', () => hand.stage.redis.restart('empty')),
  'pause of Redis': (hand) =>
    at('Redis', async () => {
      hand.stage.redis.pause();
      await sleep(hand.random.between(300, 4_000), hand.ended);
      await hand.stage.redis.heal();
    }),
  'restart of Postgres': (hand) =>
    at('Postgres', async () => {
      await hand.stage.postgres.stop();
      await hand.stage.postgres.heal();
    }),
  'kill -9 of Postgres': (hand) =>
    at('Postgres', async () => {
      await hand.stage.postgres.kill();
      await sleep(hand.random.between(0, 2_500), hand.ended);
      await hand.stage.postgres.heal();
    }),
  'pause of Postgres': (hand) =>
    at('Postgres', async () => {
      hand.stage.postgres.pause();
      await sleep(hand.random.between(300, LEASE_MS + 1_500), hand.ended);
      hand.stage.postgres.resume();
    }),
} satisfies Record<string, FaultOf>;

/** Faults between any two. */
export const WIRE_FAULTS = {
  'cut between a process and Postgres': (hand) => between(hand, slotOf(hand), 'postgres', 'cut'),
  'cut between a process and Redis': (hand) => between(hand, slotOf(hand), 'redis', 'cut'),
  'cut between a main and its clients': (hand) => between(hand, slotOf(hand, 'main'), 'clients', 'cut'),
  'silence between a process and Postgres': (hand) => between(hand, slotOf(hand), 'postgres', 'freeze'),
  'silence between a process and Redis': (hand) => between(hand, slotOf(hand), 'redis', 'freeze'),
  'silence between a main and its clients': (hand) => between(hand, slotOf(hand, 'main'), 'clients', 'freeze'),
  'cut between the workers and the model': (hand) => wire(hand, MODEL, hand.stage.outside.model, 'cut', 1_500),
  'silence between the workers and the model': (hand) => wire(hand, MODEL, hand.stage.outside.model, 'freeze', 4_000),
  'cut between the workers and the tools': (hand) => wire(hand, 'the tools', hand.stage.outside.tools, 'cut', 1_500),
  'silence between the workers and the tools': (hand) =>
    wire(hand, 'the tools', hand.stage.outside.tools, 'freeze', 4_000),
} satisfies Record<string, FaultOf>;

function at(target: string, run: () => Promise<void>) {
  return { target, run };
}

function kill(hand: Hand, slots: readonly Slot[]) {
  return at(slots.map(({ name }) => name).join(', '), async () => {
    await Promise.all(slots.map((slot) => slot.kill()));
    await sleep(hand.random.between(0, 2_000), hand.ended);
    await Promise.race([Promise.all(slots.map((slot) => slot.start())), until(hand.ended)]);
  });
}

function pause({ ended }: Hand, slot: Slot, ms: number) {
  return at(slot.name, async () => {
    slot.pause();
    await sleep(ms, ended);
    slot.resume();
  });
}

function terminate({ history, ended }: Hand, slot: Slot, againMs: number | null) {
  return at(slot.name, async () => {
    const before = slot.instance?.name ?? slot.name;
    const from = now();
    if (!(await slot.terminate(STOP_MS, againMs)))
      history.violation('SIGTERM ends a process', `${before} was still there ${STOP_MS} ms after SIGTERM (at ${from})`);
    await Promise.race([slot.start(), until(ended)]);
  });
}

function redisDown({ stage, random, ended }: Hand, data: 'keep' | 'empty') {
  return at('Redis', async () => {
    await stage.redis.kill();
    await sleep(random.between(300, 4_000), ended);
    await stage.redis.restart(data);
  });
}

function between(hand: Hand, slot: Slot, to: keyof Slot['wires'], how: 'cut' | 'freeze') {
  return wire(hand, `${slot.name} – ${to}`, slot.wires[to], how, 6_000);
}

function wire({ random, ended }: Hand, target: string, which: Wire, how: 'cut' | 'freeze', maxMs: number) {
  return at(target, async () => {
    which[how]();
    await sleep(random.between(300, maxMs), ended);
    which.restore();
  });
}

function until(ended: AbortSignal): Promise<void> {
  return sleep(2 ** 30, ended);
}
