import type { Violation } from '../history.js';
import type { ModelRequest } from '../stage/model.js';
import type { Instance } from '../stage/slot.js';
import { type Check, type Evidence, groupBy } from './evidence.js';
import type { ExecutionRow } from './final-state.js';

/** What section 5 allows to be missing after a worker's death, and what a busy machine adds. */
const RECORDED_MS = 500;
const BUSY_MS = 1_000;

/**
 * The transcript is what the model said (contract, sections 5 and 9.5): all of it for a turn that ended well, the beginning
 * of it for one that ended early, and after a worker's death all but the last 500 ms.
 */
export const texts: Check = (evidence) => {
  const found: Violation[] = [];
  const requests = groupBy(evidence.material.model, (one) => evidence.executionOf(one)?.runId ?? '');
  for (const [runId, rows] of evidence.runs) {
    const last = rows.at(-1);
    const transcript = evidence.material.transcripts.get(last?.sessionId ?? '');
    if (!last || !transcript) continue;
    const ids = new Set(rows.map(({ id }) => id));
    const kept = transcript.filter(({ role, executionId }) => role === 'assistant' && ids.has(executionId));
    const text = kept.map((one) => one.text).join('');
    const said = lastOfEach(requests.get(runId) ?? []);
    const wrong = compare(evidence, text, said, last);
    if (wrong)
      found.push({
        rule: 'the transcript is what the model said',
        what: `run ${runId}, session ${last.sessionId}: ${wrong}`,
      });
  }
  return found;
};

/** Of a request that was made again, because nothing of it was answered, only the last counts. */
function lastOfEach(requests: readonly ModelRequest[]): ModelRequest[] {
  return requests.filter(({ digest }, index) => requests.findLastIndex((one) => one.digest === digest) === index);
}

function compare(
  evidence: Evidence,
  kept: string,
  requests: readonly ModelRequest[],
  last: ExecutionRow,
): string | null {
  const words = requests.flatMap((request) => request.words);
  const said = words.map(({ text }) => text).join('');
  if (!said.startsWith(kept)) return `it has '${cut(kept)}', and the model said '${cut(said)}'`;
  if (last.status === 'success' && kept !== said)
    return `it ended well and keeps '${cut(kept)}' of what the model said: '${cut(said)}'`;
  const diedAt = deathOf(evidence, last);
  if (diedAt === null) return null;
  const due = words.filter(({ at }) => at < diedAt - RECORDED_MS - BUSY_MS);
  const expected = due.map(({ text }) => text).join('');
  return kept.startsWith(expected)
    ? null
    : `its worker died, and of '${cut(expected)}', said before, only '${cut(kept)}' is kept`;
}

/** When the worker of an interrupted execution was killed; null: it was not, or it may not have reached Postgres before. */
function deathOf(evidence: Evidence, { status, workerId, startedAt, finishedAt }: ExecutionRow): number | null {
  if (status !== 'interrupted' || finishedAt === null) return null;
  const { material, history } = evidence;
  const worker = material.instances.find((instance) => instance.workerId === workerId);
  const killedAt = worker?.killedAt ?? null;
  if (!worker || killedAt === null || killedAt > finishedAt) return null;
  const hindered = history.faults.some(
    ({ kind, target, from, to }) =>
      (kind.includes('Postgres') || kind.startsWith('pause')) &&
      from < killedAt &&
      (to ?? Number.POSITIVE_INFINITY) > startedAt - RECORDED_MS - BUSY_MS &&
      (target === 'Postgres' || isOf(target, worker)),
  );
  return hindered || evidence.isModelCut(startedAt, killedAt) ? null : killedAt;
}

function isOf(target: string, { name }: Instance): boolean {
  return target.startsWith(name.split('.')[0] ?? name);
}

function cut(text: string): string {
  return text.length > 160 ? `${text.slice(0, 70)}…${text.slice(-80)}` : text;
}
