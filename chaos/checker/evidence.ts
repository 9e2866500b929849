import type { Action, History, Operation, Violation } from '../history.js';
import { MODEL } from '../nemesis/faults.js';
import type { ModelRequest } from '../stage/model.js';
import { markersOf } from '../stage/plan.js';
import type { Instance } from '../stage/slot.js';
import type { ToolCallRecord } from '../stage/tools.js';
import type { ExecutionRow, FinalState, MessageRow } from './final-state.js';
import type { TranscriptText } from './transcripts.js';

/** Everything that is known of a round, for the checks to judge. */
export interface Material {
  readonly history: History;
  readonly final: FinalState;
  readonly transcripts: ReadonlyMap<string, readonly TranscriptText[]>;
  readonly model: readonly ModelRequest[];
  readonly complaints: readonly string[];
  readonly tools: readonly ToolCallRecord[];
  readonly instances: readonly Instance[];
}

/** A rule that must hold over a whole round. */
export type Check = (evidence: Evidence) => Violation[];

type ActionOf<K extends Action['kind']> = Extract<Action, { kind: K }>;
export type OperationOf<K extends Action['kind']> = Operation & { readonly action: ActionOf<K> };

/** The material of a round, with the ways through it that several checks need. */
export class Evidence {
  readonly executions: ReadonlyMap<string, ExecutionRow>;
  readonly executionsOf: ReadonlyMap<string, readonly ExecutionRow[]>;
  readonly runs: ReadonlyMap<string, readonly ExecutionRow[]>;
  /** User messages by marker. */
  readonly messages: ReadonlyMap<string, readonly MessageRow[]>;
  readonly messagesById: ReadonlyMap<string, MessageRow>;

  constructor(readonly material: Material) {
    const { executions, messages } = material.final;
    this.executions = new Map(executions.map((row) => [row.id, row]));
    this.executionsOf = groupBy(executions, ({ sessionId }) => sessionId);
    this.runs = groupBy(executions, ({ runId }) => runId);
    const users = messages.filter(({ role }) => role === 'user');
    this.messages = groupBy(users, ({ text }) => markersOf(text)[0] ?? '');
    this.messagesById = new Map(messages.map((row) => [row.id, row]));
  }

  get history(): History {
    return this.material.history;
  }

  get final(): FinalState {
    return this.material.final;
  }

  /** The operations of one kind, oldest first. */
  operations<K extends Action['kind']>(kind: K): OperationOf<K>[] {
    return this.history.operations.filter((one): one is OperationOf<K> => one.action.kind === kind);
  }

  /** Those of one kind that were done, or may have been. */
  effective<K extends Action['kind']>(kind: K): OperationOf<K>[] {
    return this.operations(kind).filter(({ outcome }) => outcome.kind === 'ok' || outcome.kind === 'unknown');
  }

  /** Whether the model could not be reached at some moment of this time: turns may fail, and a request be made again. */
  isModelCut(from: number, to: number | null): boolean {
    return this.history.faults.some(
      (fault) =>
        fault.target === MODEL &&
        fault.from <= (to ?? Number.POSITIVE_INFINITY) &&
        from <= (fault.to ?? Number.POSITIVE_INFINITY),
    );
  }

  /** The execution that a request of the model belongs to; undefined where its session was deleted. */
  executionOf(request: ModelRequest): ExecutionRow | undefined {
    const message = this.messages.get(request.markers.at(-1) ?? '')?.[0];
    const first = this.executions.get(message?.executionId ?? '');
    const run = this.runs.get(first?.runId ?? '') ?? [];
    // Of a run's executions, the one that had begun: a continuation begins long after the one that was suspended ended.
    return run.findLast(({ startedAt }) => startedAt <= request.at + CLOCK_MS) ?? first;
  }
}

/** What the clocks of Postgres and of this process may differ by, as both are read at different moments. */
export const CLOCK_MS = 5;

export function groupBy<T, K>(list: readonly T[], keyOf: (one: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const one of list) {
    const group = groups.get(keyOf(one));
    if (group) group.push(one);
    else groups.set(keyOf(one), [one]);
  }
  return groups;
}
