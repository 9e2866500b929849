import type { Operation, Violation } from './history.js';
import type { RoundResult } from './round.js';

/** What a run comes to, over all of its rounds. */
export interface Summary {
  readonly seed: string;
  rounds: number;
  ms: number;
  operations: number;
  requests: number;
  readonly outcomes: Map<string, number>;
  readonly faults: Map<string, number>;
  readonly executions: Map<string, number>;
  readonly items: Map<string, number>;
  streams: number;
  modelRequests: number;
  toolCalls: number;
  readonly violations: Violation[];
}

export function newSummary(seed: string): Summary {
  const counts = { outcomes: new Map(), faults: new Map(), executions: new Map(), items: new Map() };
  const totals = { rounds: 0, ms: 0, operations: 0, requests: 0, streams: 0, modelRequests: 0, toolCalls: 0 };
  return { seed, ...totals, ...counts, violations: [] };
}

/** Adds a round to a summary. */
export function add(summary: Summary, { material, violations, operations, ms }: RoundResult): void {
  const { history, final, model, tools } = material;
  summary.rounds += 1;
  summary.ms += ms;
  summary.operations += operations;
  summary.requests += history.operations.length;
  summary.streams += history.streams.length;
  summary.modelRequests += model.length;
  summary.toolCalls += tools.length;
  summary.violations.push(...violations);
  for (const operation of history.operations) count(summary.outcomes, `${operation.action.kind}: ${nameOf(operation)}`);
  for (const { kind } of history.faults) count(summary.faults, kind);
  for (const { status } of final.executions) count(summary.executions, status);
  for (const { outcome } of final.outcomes) count(summary.items, outcome);
}

function nameOf({ outcome }: Operation): string {
  return outcome.kind === 'refused' ? outcome.code || String(outcome.status) : outcome.kind;
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** One line of a round, for the terminal. */
export function roundLine({ name, operations, ms, material, violations }: RoundResult): string {
  const { history, final } = material;
  const parts = [
    `${operations} operations`,
    `${final.executions.length} executions`,
    `${history.faults.length} faults`,
  ];
  return `  round ${name}: ${parts.join(', ')}, ${(ms / 1000).toFixed(0)} s, ${violations.length} violations`;
}

/** The report of a run as Markdown. */
export function markdown(summary: Summary): string {
  const { seed, rounds, ms, operations, requests, streams, modelRequests, toolCalls, violations } = summary;
  return [
    `- Seed: \`${seed}\`; ${rounds} rounds, ${(ms / 60_000).toFixed(1)} minutes.`,
    `- ${operations} operations of the clients, ${requests} requests; ${streams} streams were read.`,
    `- ${modelRequests} requests reached the model, ${toolCalls} calls the tools.`,
    `- **${violations.length} violations.**`,
    ...table('Faults', summary.faults),
    ...table('Executions, by how they ended', summary.executions),
    ...table('Queue items, by what became of them', summary.items),
    ...table('Requests, by how they ended for the client', summary.outcomes),
    ...listed(violations),
    '',
  ].join('\n');
}

function table(title: string, counts: ReadonlyMap<string, number>): string[] {
  const rows = [...counts].toSorted(([a], [b]) => a.localeCompare(b)).map(([key, value]) => `| ${key} | ${value} |`);
  return ['', `| ${title} | |`, '| --- | ---: |', ...rows];
}

const LISTED = 50;

function listed(violations: readonly Violation[]): string[] {
  if (violations.length === 0) return [];
  const lines = violations.slice(0, LISTED).map(({ rule, what }) => `- ${rule}: ${what}`);
  return ['', '## Violations', '', ...lines];
}
