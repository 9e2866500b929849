import type { Violation } from '../history.js';
import type { ModelRequest } from '../stage/model.js';
import { type Check, CLOCK_MS, type Evidence } from './evidence.js';
import type { ExecutionRow } from './final-state.js';

/** At most one execution of a session at any time (contract, section 9.2), by the times that Postgres recorded. */
export const oneAtATime: Check = ({ executionsOf }) => {
  const found: Violation[] = [];
  for (const [sessionId, rows] of executionsOf)
    for (const [index, next] of rows.entries()) {
      const before = rows[index - 1];
      if (before && (before.finishedAt ?? Number.POSITIVE_INFINITY) > next.startedAt)
        found.push({
          rule: 'one execution of a session at a time',
          what: `session ${sessionId}: ${name(next)} started ${ms(next.startedAt)}, ${name(before)} ended ${ms(before.finishedAt)}`,
        });
    }
  return found;
};

/** What an execution may end with in a run whose model and tools always answer. */
const ENDINGS: Readonly<Record<string, readonly (string | null)[]>> = {
  success: [null],
  cancelled: [null],
  suspended: [null],
  interrupted: ['interrupted'],
  error: ['step_limit'],
};

/** What a turn ends with that could not reach the model. */
const MODEL_FAILED: ReadonlySet<string | null> = new Set(['model_unavailable', 'model_stream_broken']);

/** Nothing runs when all is quiet, and nothing ended for a reason that the run has not. */
export const endings: Check = (evidence) => {
  const rule = 'executions end as they may';
  return evidence.final.executions
    .filter(({ status, errorCode }) => !(ENDINGS[status] ?? []).includes(errorCode))
    .filter((row) => !(MODEL_FAILED.has(row.errorCode) && evidence.isModelCut(row.startedAt, row.finishedAt)))
    .map((row) => ({ rule, what: `${name(row)} of session ${row.sessionId} is ${row.status} (${row.errorCode})` }));
};

/** Stop hits the execution that it names and no other, and what it promised holds (contract, section 5). */
export const stops: Check = (evidence) => {
  const found: Violation[] = [];
  const say = (what: string) => found.push({ rule: 'Stop hits only its execution', what });
  const asked = new Set(evidence.effective('stop').map(({ action }) => action.executionId));
  for (const row of evidence.final.executions)
    if ((row.status === 'cancelled' || row.cancelRequested) && !asked.has(row.id))
      say(`${name(row)} of session ${row.sessionId} is ${row.status}, and nobody asked for it`);
  for (const { action } of evidence.operations('stop')) {
    const row = evidence.executions.get(action.executionId);
    if (action.cancelRequested && row && row.status !== 'cancelled' && row.status !== 'interrupted')
      say(`Stop of ${name(row)} answered true, and it ended ${row.status}`);
  }
  return found;
};

/** How late a request may come after its execution's end where its worker closes it at once: see `requests`. */
const ABORTED_WITHIN_MS = 1_500;

/**
 * The model's own log (contract, sections 9.2, 9.5 and 9.6): no request is made twice, none begins before its execution
 * or after its end. A worker that was paused between its look at the clock and its sending sends one request too late; it
 * finds out at once and aborts it, so that is no violation.
 */
export const requests: Check = (evidence) => {
  const found: Violation[] = [];
  const say = (rule: string, what: string) => found.push({ rule, what });
  const seen = new Map<string, ModelRequest>();
  for (const request of evidence.material.model) {
    const { id, digest, at, markers, ending, endedAt } = request;
    const first = seen.get(digest);
    if (first && !wasCutOff(evidence, first))
      say('no model request is made twice', `request ${id} repeats ${first.id} (message ${markers.at(-1)})`);
    seen.set(digest, request);
    const row = evidence.executionOf(request);
    if (!row) continue;
    const what = `request ${id} (message ${markers.at(-1)}) came ${ms(at)}; ${name(row)} ran ${ms(row.startedAt)} to ${ms(row.finishedAt)}`;
    const isAborted = ending === 'aborted' && (endedAt ?? at) - at < ABORTED_WITHIN_MS;
    if (at < row.startedAt - CLOCK_MS) say('no request before its execution', what);
    if (row.finishedAt !== null && at > row.finishedAt + CLOCK_MS && !isAborted)
      say('a worker without its lease starts no call', what);
  }
  for (const complaint of evidence.material.complaints) say('a strict model accepts every request', complaint);
  return found;
};

/** A connection that broke before anything was answered: such a request is made again, and has cost nothing. */
function wasCutOff(evidence: Evidence, { ending, at, endedAt }: ModelRequest): boolean {
  return ending === 'aborted' && evidence.isModelCut(at, endedAt);
}

/** Each call reaches the tool server at most once, is on record, and an approval came first (contract, sections 5 and 9.5). */
export const toolCalls: Check = (evidence) => {
  const found: Violation[] = [];
  const say = (what: string) => found.push({ rule: 'no tool call is made twice or unasked', what });
  const calls = new Map(evidence.final.calls.map((row) => [row.id, row]));
  const approved = answersOf(evidence, true);
  const denied = answersOf(evidence, false);
  const seen = new Map<string, string>();
  for (const { toolCallId, executionId, call, tool } of evidence.material.tools) {
    for (const key of [toolCallId, call]) {
      if (seen.has(key))
        say(`${tool} was called twice for ${key}: ${seen.get(key)} and ${toolCallId} (${executionId})`);
      seen.set(key, toolCallId);
    }
    const row = evidence.executions.get(executionId);
    if (row && !calls.has(toolCallId)) say(`${tool} was called for ${toolCallId}, which is on no record`);
    if (tool === 'pay' && !approved.has(toolCallId)) say(`${toolCallId} ran, and nobody approved it`);
    if (tool === 'pay' && denied.get(toolCallId) === 'ok') say(`${toolCallId} ran, and was denied`);
  }
  return found;
};

function answersOf(evidence: Evidence, isApproval: boolean): Map<string, string> {
  const answers = evidence.effective('answer').filter(({ action }) => action.approved === isApproval);
  return new Map(answers.map(({ action, outcome }) => [action.toolCallId, outcome.kind]));
}

/** A call is answered once (contract, section 5): a second answer is refused, but for the same key. */
export const answers: Check = (evidence) => {
  const found: Violation[] = [];
  const first = new Map<string, string | null>();
  for (const { action, outcome } of evidence.operations('answer')) {
    if (outcome.kind !== 'ok') continue;
    const { toolCallId, key } = action;
    if (first.has(toolCallId) && (key === null || first.get(toolCallId) !== key))
      found.push({ rule: 'a call is answered once', what: `${toolCallId} was answered twice` });
    first.set(toolCallId, key);
  }
  return found;
};

function name({ id, number }: ExecutionRow): string {
  return `execution ${number} (${id})`;
}

function ms(at: number | null): string {
  return at === null ? 'never' : new Date(at).toISOString().slice(11, 23);
}
