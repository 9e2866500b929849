import { expect } from 'chai';
import type { Chat } from './chat.js';
import type { HttpResponse } from './http.js';
import type { TestDatabase } from './postgres.js';
import { QueueClient } from './queue.js';
import { holdRow } from './row-lock.js';

/** How often each race is run: in the long run until no luck is left. */
export const ROUNDS = process.env.TURNKEEP_LONG ? 200 : 3;

/** One race, set up and ready to start. `left` is a request, `right` whatever it runs against. */
export interface Race {
  readonly sessionId: string;
  readonly left: () => Promise<HttpResponse>;
  readonly right: () => Promise<unknown>;
  /** Checks that what `left` was told is the truth, and that nothing is pending. Answers who won. */
  readonly outcome: (answer: HttpResponse) => Promise<'left' | 'right'>;
}

/** Who comes first at the session lock; `either`: both start at once. */
const ORDERS = ['left', 'right', 'either'] as const;

/**
 * Runs a race in each order in turn. An order is forced by the session's row, which the test holds: both sides wait for it
 * in the order of coming.
 */
export async function runRaces(database: TestDatabase, chat: Chat, prepare: () => Promise<Race>): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) {
    const race = await prepare();
    const order = ORDERS[round % ORDERS.length] ?? 'either';
    const answer = await (order === 'either' ? together(race) : oneByOne(database, race, order));
    const winner = await race.outcome(answer);
    if (order !== 'either') expect(winner, `${order} was first at the lock; ${answer.text}`).to.equal(order);
    expect(await new QueueClient(chat, race.sessionId).ids(), 'nothing is left behind').to.deep.equal([]);
  }
}

async function together({ left, right }: Race): Promise<HttpResponse> {
  const [answer] = await Promise.all([left(), right()]);
  return answer;
}

async function oneByOne(database: TestDatabase, race: Race, first: 'left' | 'right'): Promise<HttpResponse> {
  const { sessionId, left, right } = race;
  const lock = await holdRow(database, 'sessions', sessionId);
  const begun: Promise<unknown>[] = [];
  for (const side of first === 'left' ? [left, right] : [right, left]) {
    begun.push(side());
    await lock.awaited(begun.length);
  }
  await lock.release();
  const answers = await Promise.all(begun);
  return answers[first === 'left' ? 0 : 1] as HttpResponse;
}

/** The texts of a session's messages that have run, in the order of the transcript. */
export async function ran(chat: Chat, sessionId: string): Promise<unknown[]> {
  const { messages } = await chat.transcript(sessionId, 1);
  return messages.filter(({ role }) => role === 'user').map(({ content }) => content[0]?.text);
}
