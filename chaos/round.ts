import { check } from './checker/check.js';
import type { Material } from './checker/evidence.js';
import { readFinalState } from './checker/final-state.js';
import { becomeQuiet } from './checker/quiet.js';
import { readTranscripts } from './checker/transcripts.js';
import { History, type Violation } from './history.js';
import { Nemesis } from './nemesis/nemesis.js';
import type { Random } from './random.js';
import { now, sleep } from './stage/clock.js';
import type { Stage } from './stage/stage.js';
import { Chats } from './workload/chats.js';
import { Workload } from './workload/workload.js';

/** How long streams may take to end after their turns, in ms. */
const STREAMS_MS = 10_000;

export interface RoundResult {
  readonly name: string;
  readonly operations: number;
  readonly ms: number;
  readonly material: Material;
  readonly violations: readonly Violation[];
}

/**
 * One round: the clients work while the nemesis breaks things, until `faultsMs` are over, `operations` are made or
 * `ended` is given; then everything is repaired and left to come to rest, and the checker judges it.
 */
export async function playRound(
  stage: Stage,
  name: string,
  random: Random,
  limits: { faultsMs: number; operations: number; ended: AbortSignal },
): Promise<RoundResult> {
  const began = now();
  const slots = [...stage.mains, ...stage.workers];
  for (const log of [stage.model, stage.tools, ...slots]) log.clear();
  const history = new History();
  const chats = new Chats(stage.people.seats);
  const nemesis = new Nemesis(stage, history, random.fork('nemesis'));
  const workload = new Workload(name, history, chats, stage.mains, random.fork('workload'), limits.operations);
  workload.start();
  nemesis.start();
  await Promise.race([sleep(limits.faultsMs, limits.ended), workload.finished()]);
  await Promise.all([workload.stop(), nemesis.stop()]);
  await becomeQuiet(stage, history, chats.all);
  for (const end = now() + STREAMS_MS; workload.streams > 0 && now() < end; ) await sleep(100);
  const material = {
    history,
    final: await readFinalState(stage.query, [...chats.all.keys()]),
    transcripts: await readTranscripts(stage.mains[0]?.baseUrl ?? '', chats.all.values()),
    model: stage.model.requests,
    complaints: stage.model.complaints,
    tools: stage.tools.calls,
    instances: slots.flatMap((slot) => slot.instances),
  };
  const violations = check(material);
  workload.leave();
  return { name, operations: workload.operations, ms: now() - began, material, violations };
}
