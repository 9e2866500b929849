import type { Violation } from '../history.js';
import { editOf } from '../stage/plan.js';
import { type Check, type Evidence, groupBy, type OperationOf } from './evidence.js';

/**
 * Accepted means kept (contract, section 9.1): every accepted message is pending, removed, started once or steered once;
 * one whose sending had no answer is there at most once; nothing is there that nobody sent.
 */
export const accounting: Check = (evidence) => {
  const found: Violation[] = [];
  const say = (what: string) => found.push({ rule: 'every message is accounted for exactly once', what });
  const sends = groupBy(evidence.operations('send'), ({ action }) => action.marker);
  for (const [marker, attempts] of sends) checkMessage(evidence, marker, attempts, say);
  for (const [marker, rows] of evidence.messages)
    if (!sends.has(marker)) say(`a message that nobody sent: ${JSON.stringify(rows[0])}`);
  checkSeenTwice(evidence, say);
  return found;
};

function checkMessage(
  evidence: Evidence,
  marker: string,
  attempts: readonly OperationOf<'send'>[],
  say: (what: string) => void,
): void {
  const [first] = attempts;
  const rows = evidence.messages.get(marker) ?? [];
  if (rows.length > 1) say(`message ${marker} is there ${rows.length} times`);
  const answers = new Map(
    attempts.flatMap(({ action: { accepted } }) => (accepted ? [[accepted.queueId, accepted]] : [])),
  );
  if (answers.size > 1) say(`message ${marker} was accepted as ${[...answers.keys()].join(' and ')} with one key`);
  const isRefused = attempts.every(({ outcome }) => outcome.kind === 'refused' || outcome.kind === 'unsent');
  if (isRefused && rows.length > 0) say(`message ${marker} was refused and is there`);
  for (const { queueId, messageId } of answers.values())
    checkAccepted(
      evidence,
      `message ${marker} (queue item ${queueId}, session ${first?.sessionId})`,
      queueId,
      messageId,
      say,
    );
}

function checkAccepted(
  evidence: Evidence,
  name: string,
  queueId: string,
  messageId: string,
  say: (what: string) => void,
) {
  const { final } = evidence;
  const outcomes = final.outcomes.filter((row) => row.queueId === queueId);
  const pending = final.pending.filter((row) => row.queueId === queueId);
  const [outcome] = outcomes;
  const row = evidence.messagesById.get(messageId);
  if (outcomes.length + pending.length !== 1) {
    say(`${name} is ${pending.length} times pending and has ${outcomes.length} outcomes (${outcome?.outcome})`);
    return;
  }
  if (outcome && final.deleted.has(outcome.sessionId)) return;
  if (!outcome && (!row || row.executionId !== null))
    say(`${name} is pending, and its message is ${JSON.stringify(row)}`);
  if (outcome?.outcome === 'removed') {
    if (row) say(`${name} was removed, and its message is still there`);
    const asked = evidence.effective('remove').some(({ action }) => action.queueId === queueId);
    if (!asked) say(`${name} was removed, and nobody asked for it`);
  } else if (outcome && row?.executionId !== outcome.executionId) {
    say(`${name} was ${outcome.outcome} in ${outcome.executionId}, and its message is in ${row?.executionId}`);
  }
}

/** What streams announced: no message is started or steered in twice, whatever the database says at the end. */
function checkSeenTwice({ history }: Evidence, say: (what: string) => void): void {
  const executions = new Map<string, Map<string, string>>();
  for (const { events, executionId } of history.streams)
    for (const { type, data } of events) {
      if (type !== 'execution-started' && type !== 'message-steered') continue;
      const { id } = (data.message ?? {}) as { id?: string };
      if (id === undefined) continue;
      const seen = executions.get(id) ?? new Map<string, string>();
      seen.set(String(data.executionId ?? executionId), type);
      executions.set(id, seen);
    }
  for (const [id, seen] of executions)
    if (seen.size > 1) say(`message ${id} became part of ${[...seen].map((one) => one.join(' by ')).join(' and ')}`);
}

/** What a user did to an item holds: a removed one does not run, an edited one runs with its last text, a steer was asked for. */
export const changes: Check = (evidence) => {
  const found: Violation[] = [];
  const say = (what: string) => found.push({ rule: 'changes of the queue hold', what });
  const outcomes = new Map(evidence.final.outcomes.map((row) => [row.queueId, row]));
  for (const { action, outcome } of evidence.operations('remove')) {
    const became = outcomes.get(action.queueId)?.outcome ?? 'pending';
    if (outcome.kind === 'ok' && became !== 'removed') say(`item ${action.queueId} was removed and is ${became}`);
  }
  const steers = new Set(evidence.effective('steer').map(({ action }) => `${action.queueId} ${action.executionId}`));
  for (const { queueId, outcome, executionId } of outcomes.values())
    if (outcome === 'steered' && !steers.has(`${queueId} ${executionId}`))
      say(`item ${queueId} was steered into ${executionId}, and nobody asked for it`);
  checkEdits(evidence, say);
  return found;
};

function checkEdits(evidence: Evidence, say: (what: string) => void): void {
  const rows = [...evidence.final.outcomes, ...evidence.final.pending];
  const messages = new Map(rows.map(({ queueId, messageId }) => [queueId, evidence.messagesById.get(messageId)]));
  for (const [queueId, edits] of groupBy(evidence.effective('edit'), ({ action }) => action.queueId)) {
    const message = messages.get(queueId);
    if (!message) continue;
    const name = editOf(message.text);
    const last = edits.find(({ action }) => action.edit === name);
    const lost = edits.find(
      ({ action, outcome, from }) => outcome.kind === 'ok' && action.edit !== name && isBefore(last, from),
    );
    if (lost) say(`item ${queueId} has the text of ${name ?? 'its sending'}, and edit ${lost.action.edit} came later`);
  }
}

/** Whether an edit was over before `at`. One without an answer may be done at any time after. */
function isBefore(edit: OperationOf<'edit'> | undefined, at: number): boolean {
  return edit === undefined || (edit.outcome.kind === 'ok' && edit.to < at);
}
