/**
 * What sections 6 and 9 of the contract say of one session's queue, as a small machine. A client's request is one atomic
 * change with a predicted answer; what the product does by itself (`internal`) are atomic changes as well. Between any two
 * of them another client may come, so a model of the session is a set of states: those that explain all answers so far.
 */
export interface Item {
  readonly key: number;
  readonly text: string;
  /** The order of its reservation; null: none. */
  readonly reserved: number | null;
}

export type Fate = 'pending' | 'removed' | `executed by ${number}` | `steered into ${number}`;
export type StepEnd = 'call' | 'turn' | 'broken';

export interface State {
  readonly pending: readonly Item[];
  /** `asking`: a model request stands open. `stepping`: the next one is about to be made. */
  readonly phase: 'idle' | 'asking' | 'stepping' | 'stopping' | `ending by ${StepEnd}`;
  /** The statuses of the session's executions; only the last one may be `running`. */
  readonly executions: readonly string[];
  readonly step: number;
  readonly steerable: boolean;
  /** Model requests so far. */
  readonly requests: number;
  /** The user's messages in the transcript. */
  readonly users: readonly string[];
  /** By the item's key. */
  readonly fates: readonly Fate[];
  readonly reservations: number;
}

export const MAX_STEPS = 4;

/** A change that somebody asks for. Items go by their keys, executions by their place in the session; -1 never was. */
export type Op =
  | { readonly kind: 'send'; readonly text: string }
  | { readonly kind: 'edit'; readonly key: number; readonly text: string }
  | { readonly kind: 'remove'; readonly key: number }
  | { readonly kind: 'reorder'; readonly key: number; readonly target: number; readonly expected: readonly number[] }
  | { readonly kind: 'steer'; readonly key: number; readonly execution: number }
  | { readonly kind: 'giveBack'; readonly key: number }
  | { readonly kind: 'stop'; readonly execution: number }
  | { readonly kind: 'end'; readonly by: StepEnd };

export interface Outcome {
  readonly state: State;
  /** What the client is told, in one canonical form. */
  readonly answer: string;
}

export const EMPTY: State = {
  pending: [],
  phase: 'idle',
  executions: [],
  step: 0,
  steerable: false,
  requests: 0,
  users: [],
  fates: [],
  reservations: 0,
};

/** `GET …/queue`: items with their reservations, and which execution is steerable. */
export function view({ pending, executions, steerable }: State): string {
  const running = executions.length - 1;
  const items = pending.map(({ key, text, reserved }) => [key, text, reserved === null ? null : running]);
  return JSON.stringify({ items, steerable: steerable ? running : null });
}

/** Everything that can be seen of a session from outside. */
export function observation(state: State): string {
  const { executions, requests, users } = state;
  return JSON.stringify({ queue: view(state), executions, requests, users });
}

/** One client's change. */
export function apply(state: State, op: Op): Outcome {
  switch (op.kind) {
    case 'send': {
      const item = { key: state.fates.length, text: op.text, reserved: null };
      const next = { ...state, pending: [...state.pending, item], fates: [...state.fates, 'pending' as const] };
      return { state: next, answer: '202' };
    }
    case 'end':
      return { state: { ...state, phase: `ending by ${op.by}` }, answer: 'none' };
    case 'stop':
      return stop(state, op.execution);
    default:
      return change(state, op);
  }
}

function stop(state: State, execution: number): Outcome {
  if (state.executions[execution] !== 'running') return { state, answer: 'false' };
  return { state: { ...giveAllBack(state), steerable: false, phase: 'stopping' }, answer: 'true' };
}

function change(state: State, op: Exclude<Op, { kind: 'send' | 'end' | 'stop' }>): Outcome {
  const refused = refusal(state, op);
  if (refused !== null) return { state, answer: refused };
  const next = changed(state, op);
  if (op.kind === 'remove') return { state: next, answer: '200' };
  if (op.kind === 'edit') return { state: next, answer: `200 ${op.text}` };
  return { state: next, answer: `200 ${view(next)}` };
}

/** The refusals of section 6, in the order of its checks; null: it is done. */
function refusal(state: State, op: Exclude<Op, { kind: 'send' | 'end' | 'stop' }>): string | null {
  const keys = op.kind === 'reorder' ? [op.key, op.target] : [op.key];
  if (keys.some((key) => state.fates[key] === undefined)) return '404 not_found';
  if (op.kind === 'edit' && op.text === '') return '400 invalid_request';
  if (keys.some((key) => state.fates[key] !== 'pending')) return '409 item_started';
  if (op.kind === 'reorder') return refusedReorder(state, op);
  if (op.kind !== 'steer') return null;
  const isRunning = op.execution === state.executions.length - 1;
  if (isRunning && itemOf(state, op.key)?.reserved != null) return null;
  return state.steerable && isRunning ? null : '409 execution_not_steerable';
}

function refusedReorder(state: State, { key, target, expected }: Extract<Op, { kind: 'reorder' }>): string | null {
  if (key === target) return null;
  if (movable(state).join() !== expected.join()) return '409 queue_changed';
  const isReserved = [key, target].some((each) => itemOf(state, each)?.reserved !== null);
  return isReserved ? '409 item_reserved' : null;
}

function changed(state: State, op: Exclude<Op, { kind: 'send' | 'end' | 'stop' }>): State {
  const { key } = op;
  switch (op.kind) {
    case 'edit':
      return withItem(state, key, { text: op.text });
    case 'remove': {
      const fates = state.fates.map((fate, at) => (at === key ? 'removed' : fate));
      return { ...state, pending: state.pending.filter((item) => item.key !== key), fates };
    }
    case 'giveBack':
      return withItem(state, key, { reserved: null });
    case 'steer': {
      if (itemOf(state, key)?.reserved != null) return state;
      const reserved = state.reservations + 1;
      return { ...withItem(state, key, { reserved }), reservations: reserved };
    }
    case 'reorder':
      return key === op.target ? state : reordered(state, key, op.target);
  }
}

function reordered(state: State, key: number, target: number): State {
  const free = movable(state);
  const order = free.filter((each) => each !== key);
  order.splice(free.indexOf(target), 0, key);
  const pending = state.pending.map((item) => (item.reserved === null ? itemOf(state, order.shift() ?? -1) : item));
  return { ...state, pending: pending.filter((item) => item !== undefined) };
}

/** The keys of what is pending without reserved steers, in order. */
export function movable({ pending }: State): number[] {
  return pending.filter(({ reserved }) => reserved === null).map(({ key }) => key);
}

function itemOf({ pending }: State, key: number): Item | undefined {
  return pending.find((item) => item.key === key);
}

function withItem(state: State, key: number, fields: Partial<Item>): State {
  return { ...state, pending: state.pending.map((item) => (item.key === key ? { ...item, ...fields } : item)) };
}

function giveAllBack(state: State): State {
  return { ...state, pending: state.pending.map((item) => ({ ...item, reserved: null })) };
}

/** The product's own next change; null where it waits for somebody. */
export function internal(state: State): State | null {
  switch (state.phase) {
    case 'asking':
      return null;
    case 'idle':
      return state.pending.length > 0 ? claimed(state) : null;
    case 'stepping':
      return asked(state);
    case 'stopping':
      return settled(state, 'cancelled');
    case 'ending by broken':
      return settled(state, 'error');
    case 'ending by call':
      return state.step < MAX_STEPS ? consumed(state) : settled(state, 'error');
    case 'ending by turn':
      return state.step < MAX_STEPS && reservedOf(state).length > 0 ? consumed(state) : settled(state, 'success');
  }
}

function reservedOf({ pending }: State): Item[] {
  return pending.filter(({ reserved }) => reserved !== null).sort((a, b) => (a.reserved ?? 0) - (b.reserved ?? 0));
}

function claimed(state: State): State {
  const [first, ...pending] = state.pending;
  if (!first) return state;
  const execution = state.executions.length;
  const taken = taking(state, [first], `executed by ${execution}`);
  const executions = [...state.executions, 'running'];
  return { ...taken, pending, executions, phase: 'stepping', step: 0, steerable: true };
}

function consumed(state: State): State {
  const taken = taking(state, reservedOf(state), `steered into ${state.executions.length - 1}`);
  return { ...taken, pending: state.pending.filter(({ reserved }) => reserved === null), phase: 'stepping' };
}

function taking(state: State, items: readonly Item[], fate: Fate): State {
  const keys = new Set(items.map(({ key }) => key));
  const fates = state.fates.map((old, key) => (keys.has(key) ? fate : old));
  return { ...state, fates, users: [...state.users, ...items.map(({ text }) => text)] };
}

/** The last step that the limits permit takes no steers: what came after the boundary goes back. */
function asked(state: State): State {
  const step = state.step + 1;
  const isLast = step === MAX_STEPS;
  const open = isLast ? giveAllBack(state) : state;
  return { ...open, phase: 'asking', step, requests: state.requests + 1, steerable: state.steerable && !isLast };
}

function settled(state: State, status: string): State {
  const executions = [...state.executions.slice(0, -1), status];
  return { ...giveAllBack(state), executions, phase: 'idle', steerable: false, step: 0 };
}

/**
 * Every way in which these changes can come between each other and the product's own, up to where the product waits:
 * the final states, each with what the clients were told.
 */
export function interleavings(state: State, ops: readonly Op[]): { state: State; answers: readonly string[] }[] {
  const found = new Map<string, { state: State; answers: readonly string[] }>();
  const explore = (at: State, left: readonly number[], answers: readonly string[]): void => {
    for (const next of left) {
      const outcome = apply(at, ops[next] as Op);
      explore(
        outcome.state,
        left.filter((each) => each !== next),
        answers.with(next, outcome.answer),
      );
    }
    const own = internal(at);
    if (own) explore(own, left, answers);
    else if (left.length === 0) found.set(JSON.stringify([at, answers]), { state: at, answers });
  };
  explore(
    state,
    ops.map((_, index) => index),
    ops.map(() => ''),
  );
  return [...found.values()];
}
