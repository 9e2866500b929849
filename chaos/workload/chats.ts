import { randomUUID } from 'node:crypto';
import type { Seat } from '../stage/people.js';

/** What the clients know of one session; they share it, as the tabs of one user do. */
export interface ChatSession {
  readonly id: string;
  readonly seat: Seat;
  /** Messages that were sent to it. */
  sends: number;
  /** Executions that somebody has seen, oldest first. */
  readonly executions: string[];
  /** The last cursor that was seen of each. */
  readonly cursors: Map<string, string>;
  /** Calls that waited for an approval when somebody looked last. */
  suspensions: { readonly runId: string; readonly toolCallId: string }[];
}

/** Sessions that are used side by side by each user at each agent. */
const SESSIONS_A_SEAT = 2;
/** Messages after which a session is left and a new one begun: contexts stay short. */
const MESSAGES_A_SESSION = 18;

/** The sessions of one round. */
export class Chats {
  /** All that were used, by id. */
  readonly all = new Map<string, ChatSession>();
  readonly #places: ChatSession[];

  constructor(seats: readonly Seat[]) {
    this.#places = seats.flatMap((seat) => Array.from({ length: SESSIONS_A_SEAT }, () => this.#begin(seat)));
  }

  get places(): number {
    return this.#places.length;
  }

  at(place: number): ChatSession {
    const session = this.#places[place];
    if (!session) throw new RangeError(`there is no place ${place}`);
    return session;
  }

  /** Counts a message; where the session has had enough of them, another takes its place. */
  sent(session: ChatSession): void {
    session.sends += 1;
    if (session.sends >= MESSAGES_A_SESSION) this.leave(session);
  }

  /** Another session takes the place of this one. */
  leave(session: ChatSession): void {
    const place = this.#places.indexOf(session);
    if (place >= 0) this.#places[place] = this.#begin(session.seat);
  }

  #begin(seat: Seat): ChatSession {
    const id = randomUUID();
    const session: ChatSession = { id, seat, sends: 0, executions: [], cursors: new Map(), suspensions: [] };
    this.all.set(id, session);
    return session;
  }
}

/** Notes an execution that was seen. */
export function sawExecution(session: ChatSession, executionId: unknown): void {
  if (typeof executionId !== 'string' || session.executions.includes(executionId)) return;
  session.executions.push(executionId);
}
