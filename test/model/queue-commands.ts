import { expect } from 'chai';
import fc from 'fast-check';
import { userTexts } from '../support/steered-turn.js';
import { interleavings, movable, type Op, observation, type State, type StepEnd } from './queue-model.js';
import type { RealSession } from './queue-session.js';

/** What is known of a session: every state that explains all that was seen. */
export interface Known {
  states: readonly State[];
}

/** How often each answer was given, changes came at once, and more than one state explained what was seen. */
export const tally = new Map<string, number>();

function count(what: string): void {
  tally.set(what, (tally.get(what) ?? 0) + 1);
}

type Command = fc.AsyncCommand<Known, RealSession>;

/** A change as it is drawn: numbers that become items and executions of the session as it then stands. */
interface Draft {
  readonly kind: Op['kind'];
  readonly item: number;
  readonly other: number;
  readonly by: StepEnd;
  /** One in eight goes wrong on purpose: an unknown id, another order, an empty text, an execution of the past. */
  readonly wrong: boolean;
}

const CLIENT: Op['kind'][] = ['edit', 'remove', 'reorder', 'steer', 'giveBack'];

const draft = (kinds: readonly Op['kind'][]): fc.Arbitrary<Draft> =>
  fc.record({
    kind: fc.constantFrom(...kinds),
    item: fc.nat(1_000),
    other: fc.nat(1_000),
    by: fc.constantFrom<StepEnd>('call', 'call', 'turn', 'turn', 'broken'),
    wrong: fc.nat(7).map((roll) => roll === 0),
  });

const one = (...kinds: Op['kind'][]) => draft(kinds).map((drawn) => new Change([drawn]));
const both = (left: Op['kind'][], right: Op['kind'][]) =>
  fc.tuple(draft(left), draft(right)).map((drawn) => new Change(drawn));

/**
 * One client's change at a time, and two clients' changes at once, of which one may be the end of a step or a Stop. Each of
 * these is as likely as the next: more come in than go out, so that the queue is seldom empty.
 */
export const commands = fc.commands(
  [
    one('send'),
    one('send'),
    one('send'),
    one(...CLIENT),
    one('steer', 'reorder', 'edit'),
    one('steer', 'steer', 'reorder', 'giveBack'),
    one('end', 'end', 'stop'),
    both(CLIENT, [...CLIENT, 'send']),
    both(['steer', 'reorder', 'giveBack'], ['steer', 'reorder']),
    both(['steer', ...CLIENT], ['end', 'end', 'stop']),
  ],
  { maxCommands: 60, size: 'max' },
);

/** Makes one change, or several at once through different mains, and compares all that can be seen with the model. */
export class Change implements Command {
  readonly #drafts: readonly Draft[];
  #ops: readonly Op[] = [];

  constructor(drafts: readonly Draft[]) {
    this.#drafts = drafts;
  }

  check({ states }: Readonly<Known>): boolean {
    const [state] = states;
    if (!state) return false;
    const isAsking = state.phase === 'asking';
    return this.#drafts.every(({ kind }) => {
      if (kind === 'send') return state.pending.length < 40;
      return kind === 'end' || kind === 'stop' ? isAsking : state.fates.length > 0;
    });
  }

  async run(known: Known, real: RealSession): Promise<void> {
    const [state] = known.states;
    if (!state) return;
    this.#ops = this.#drafts.map((drawn, index) => toOp(drawn, state, `${real.marker} ${state.fates.length}.${index}`));
    await perform(known, real, this.#ops);
  }

  toString(): string {
    return this.#ops.length > 0 ? JSON.stringify(this.#ops) : this.#drafts.map(({ kind }) => kind).join('|');
  }
}

let edits = 0;

function toOp({ kind, item, other, by, wrong }: Draft, state: State, text: string): Op {
  const known = state.fates.length;
  const pending = state.pending.map((each) => each.key);
  // Seven in eight mean something that is pending, where there is something.
  const pick = (drawn: number): number =>
    pending.length > 0 && drawn % 8 > 0 ? (pending[drawn % pending.length] ?? 0) : drawn % Math.max(known, 1);
  const key = wrong && item % 2 === 0 ? -1 : pick(item);
  const running = state.executions.length - 1;
  switch (kind) {
    case 'send':
      return { kind, text };
    case 'edit':
      edits += 1;
      return { kind, key, text: wrong ? '' : `${text} edit ${edits}` };
    case 'reorder': {
      const expected = movable(state);
      return { kind, key, target: pick(other), expected: wrong ? [...expected].reverse() : expected };
    }
    case 'steer':
      return { kind, key, execution: wrong ? (other % 3) - 1 : running };
    case 'stop':
      return { kind, execution: running };
    case 'end':
      return { kind, by };
    default:
      return { kind, key };
  }
}

/** Makes these changes at once, and keeps the states that explain what came of it. */
export async function perform(known: Known, real: RealSession, ops: readonly Op[]): Promise<void> {
  const before = known.states;
  const running = await Promise.all(ops.map((op, index) => real.run(op, (real.accepted.length + index) % 2)));
  const possible = before.flatMap((state) => interleavings(state, ops));
  const seen = await real.until([...new Set(possible.map(({ state }) => observation(state)))]);
  const answers = running.map((answer) => answer());
  const kept = possible.filter(
    (one) => observation(one.state) === seen && one.answers.join('\n') === answers.join('\n'),
  );
  if (kept.length === 0) {
    const said = possible.map((way) => way.answers.join(' | '));
    throw new Error(`${JSON.stringify(ops)}\nwas answered ${answers.join(' | ')}\nexpected one of\n${said.join('\n')}`);
  }
  known.states = distinct(kept.map(({ state }) => state));
  for (const [index, { kind }] of ops.entries()) count(`${kind} ${/^200|.*/.exec(answers[index] ?? '')?.[0]}`);
  if (ops.length > 1) count('two at once');
  if (known.states.length > 1) count('states left in doubt');
  checkRequest(known, real);
}

function distinct(states: readonly State[]): State[] {
  return [...new Map(states.map((state) => [JSON.stringify(state), state])).values()];
}

/** The model of the turn that runs was told exactly what the transcript says. */
function checkRequest({ states }: Known, real: RealSession): void {
  const [state] = states;
  const request = real.requests.at(-1);
  if (state?.phase === 'asking') expect(userTexts(request?.body ?? {})).to.deep.equal(state.users);
}
