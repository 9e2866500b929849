import type { RecordedExecution } from '@turnkeep/shared/chat/events-from-record';
import type { ChatEvent, SettledStatus } from '@turnkeep/shared/contract/events';

/** An event that was derived from the record, with the number that it has in the stream. */
export interface RecordedEvent {
  n: number;
  event: ChatEvent;
}

/**
 * Events after number `last` that report a commit (contract, section 4) and that a snapshot would only imply: the start, and
 * messages that were steered in.
 */
export function eventsBefore(recorded: RecordedExecution, last: number): RecordedEvent[] {
  const { executionId, runId, sessionId, message, steered } = recorded;
  const started: RecordedEvent = {
    n: 1,
    event: { type: 'execution-started', executionId, runId, sessionId, ...(message ? { message } : {}) },
  };
  const events = steered.map(
    ({ queueId, message: text, n }): RecordedEvent => ({
      n,
      event: { type: 'message-steered', queueId, executionId, message: text },
    }),
  );
  return [started, ...events].filter(({ n }) => n > last);
}

/** The events after number `last` with which a settled execution ends. */
export function finalEvents(recorded: RecordedExecution, last: number): RecordedEvent[] {
  const { executionId, runId, sessionId, status, finalN, usage, error } = recorded;
  if (finalN === null) return [];
  const suspended = recorded.suspended.map(
    ({ n, truncated, ...call }): RecordedEvent => ({
      n,
      event: { type: 'tool-call-suspended', runId, ...call, ...(truncated ? { truncated } : {}) },
    }),
  );
  const failed: RecordedEvent[] = error ? [{ n: finalN - 1, event: { type: 'error', ...error } }] : [];
  const done: RecordedEvent = {
    n: finalN,
    event: { type: 'done', sessionId, executionId, status: status as SettledStatus, usage },
  };
  return [...suspended, ...failed, done].filter(({ n }) => n > last);
}
