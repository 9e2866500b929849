import type { Instance } from './stage/slot.js';

/**
 * How a request ended, as the client saw it. `unknown`: no answer, or a 503: it may have been done, or be done yet.
 * `unsent`: its main was down.
 */
export type Outcome =
  | { readonly kind: 'ok'; readonly status: number }
  | { readonly kind: 'refused'; readonly status: number; readonly code: string }
  | { readonly kind: 'unknown'; readonly why: string }
  | { readonly kind: 'unsent' };

/** What a request was to do. */
export type Action =
  | { readonly kind: 'send'; readonly marker: string; readonly key: string | null; accepted: AcceptedIds | null }
  | { readonly kind: 'edit'; readonly queueId: string; readonly edit: string }
  | { readonly kind: 'remove'; readonly queueId: string }
  | { readonly kind: 'reorder'; readonly queueId: string; readonly targetQueueId: string }
  | { readonly kind: 'steer'; readonly queueId: string; readonly executionId: string }
  | { readonly kind: 'unsteer'; readonly queueId: string }
  | { readonly kind: 'stop'; readonly executionId: string; cancelRequested: boolean | null }
  | { readonly kind: 'answer'; readonly toolCallId: string; readonly approved: boolean; readonly key: string | null }
  | { readonly kind: 'delete' }
  | { readonly kind: 'read'; readonly what: 'queue' | 'transcript' };

export interface AcceptedIds {
  readonly queueId: string;
  readonly messageId: string;
}

/** One request of a client. */
export interface Operation {
  readonly client: number;
  readonly sessionId: string;
  /** The main that it went to, as `main 0.3`: slot and instance. */
  readonly main: string;
  readonly from: number;
  to: number;
  readonly action: Action;
  outcome: Outcome;
}

/** The order of a session's unreserved pending items, as an answer showed it. */
export interface Observation {
  readonly sessionId: string;
  readonly from: number;
  readonly to: number;
  readonly queueIds: readonly string[];
  /** Those of them that are reserved for an execution. */
  readonly reserved: readonly string[];
  /** The reorder whose answer it is. */
  readonly by: Operation | null;
}

/** An event of a stream as far as the checker needs it. */
export interface StreamEvent {
  readonly type: string;
  readonly id: string | undefined;
  readonly at: number;
  readonly data: Readonly<Record<string, unknown>>;
}

/** One stream that a client held open. */
export interface StreamRecord {
  readonly client: number;
  readonly sessionId: string;
  readonly of: 'send' | 'follow' | 'resume';
  readonly instance: Instance | null;
  /** The execution that it follows, as far as that is known. */
  executionId: string | null;
  /** The cursor that it began after. */
  readonly after: string | null;
  readonly openedAt: number;
  endedAt: number | null;
  /** `clean`: the body came to its end. `closed`: the client left. `malformed`: something that section 4 has not. */
  ending: 'open' | 'clean' | 'broken' | 'closed' | 'malformed';
  mistake: string | null;
  readonly events: StreamEvent[];
}

/** One fault, from its beginning to the repair. */
export interface Fault {
  readonly kind: string;
  readonly target: string;
  readonly from: number;
  to: number | null;
}

/** Something that must not be. */
export interface Violation {
  readonly rule: string;
  readonly what: string;
}

/** Everything that clients and nemesis did in one round. */
export class History {
  readonly operations: Operation[] = [];
  readonly observations: Observation[] = [];
  readonly streams: StreamRecord[] = [];
  readonly faults: Fault[] = [];
  /** What was seen on the way and needs no further evidence. */
  readonly violations: Violation[] = [];
  /** When the last fault was repaired. */
  quietAt = Number.POSITIVE_INFINITY;

  violation(rule: string, what: string): void {
    this.violations.push({ rule, what });
  }
}
