import type { Observation, Violation } from '../history.js';
import { markersOf } from '../stage/plan.js';
import { type Check, type Evidence, groupBy, type OperationOf } from './evidence.js';

/**
 * Executions start in the saved order (contract, section 9.3). Of two items that an answer showed one before the other, or
 * of which one was accepted before the other was sent, the first starts first; unless one of them was steered in or
 * reserved, or a reorder came in between, or may have.
 */
export const savedOrder: Check = (evidence) => {
  const reorders = groupBy(evidence.effective('reorder'), ({ sessionId }) => sessionId);
  const starts = startsOf(evidence);
  const found = new Map<string, Violation>();
  for (const observation of [...evidence.history.observations, ...acceptances(evidence)]) {
    const others = (reorders.get(observation.sessionId) ?? []).filter((one) => one !== observation.by);
    const isMoved = others.some((one) => mayComeAfter(one, observation));
    if (isMoved) continue;
    const ids = observation.queueIds.filter((id) => starts.has(id));
    for (const [index, second] of ids.entries()) {
      const first = ids[index - 1];
      if (first === undefined || (starts.get(first) ?? 0) < (starts.get(second) ?? 0)) continue;
      const what = `session ${observation.sessionId}: item ${second} (execution ${starts.get(second)}) stood behind ${first} (execution ${starts.get(first)})`;
      found.set(`${first} ${second}`, { rule: 'executions start in the saved order', what });
    }
  }
  return [...found.values()];
};

/** A reorder that was refused has changed nothing; one without an answer may be done at any time after its sending. */
function mayComeAfter({ outcome, to }: OperationOf<'reorder'>, { from }: Observation): boolean {
  return outcome.kind === 'unknown' || to >= from;
}

/** The numbers of the executions that items started. */
function startsOf({ final, executions }: Evidence): Map<string, number> {
  const starts = new Map<string, number>();
  for (const { queueId, outcome, executionId } of final.outcomes) {
    const row = executions.get(executionId ?? '');
    if (outcome === 'started' && row) starts.set(queueId, row.number);
  }
  return starts;
}

/** Two messages of which the second was sent after the first had been accepted. */
function acceptances(evidence: Evidence): Observation[] {
  const accepted = evidence.operations('send').filter(({ action }) => action.accepted !== null);
  // With a key, the acceptance may be that of an earlier attempt.
  const plain = accepted.filter(({ action }) => action.key === null);
  return [...groupBy(plain, ({ sessionId }) => sessionId)].flatMap(([sessionId, sends]) => {
    const sorted = sends.toSorted((a, b) => a.from - b.from);
    return sorted.flatMap((second, index) => {
      const first = sorted.slice(0, index).findLast(({ to }) => to < second.from);
      const ids = [first, second].flatMap((one) => one?.action.accepted?.queueId ?? []);
      return first ? [{ sessionId, from: first.from, to: second.to, queueIds: ids, reserved: [], by: null }] : [];
    });
  });
}

/**
 * What the model sees is the transcript: the messages of each request are the beginning of the session's messages in their
 * final order, each once (contract, sections 5 and 6). So a message that was steered in twice, or ran twice, shows.
 */
export const contexts: Check = (evidence) => {
  const found: Violation[] = [];
  const users = evidence.final.messages.filter(({ role, executionId }) => role === 'user' && executionId !== null);
  const orders = new Map<string, string[]>();
  for (const [sessionId, rows] of groupBy(users, (row) => row.sessionId))
    orders.set(
      sessionId,
      rows.map(({ text }) => markersOf(text)[0] ?? ''),
    );
  for (const { id, markers } of evidence.material.model) {
    const sessionId = evidence.messages.get(markers[0] ?? '')?.[0]?.sessionId;
    if (sessionId === undefined) continue;
    const order = orders.get(sessionId) ?? [];
    const wrong = markers.findIndex((marker, index) => order[index] !== marker);
    if (wrong >= 0)
      found.push({
        rule: 'the model sees the transcript',
        what: `request ${id}, session ${sessionId}: message ${wrong} is ${markers[wrong]} and should be ${order[wrong]}`,
      });
  }
  return found;
};
