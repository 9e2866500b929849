import type { Action, Outcome } from '../history.js';
import type { Random } from '../random.js';
import { sleep } from '../stage/clock.js';
import { newText } from '../stage/plan.js';
import { type ChatSession, type Chats, sawExecution } from './chats.js';
import { acceptedIds, type Client, type QueueAnswer } from './client.js';

/** What an operation has to work with. */
export interface Turn {
  readonly client: Client;
  readonly chats: Chats;
  readonly session: ChatSession;
  readonly random: Random;
  /** Names the operation: no other of the run has it. */
  readonly name: string;
  /** Given when the clients are to stop. */
  readonly ended: AbortSignal;
}

export type OperationName = keyof typeof OPERATIONS;

/** How often each operation is made, beside the others. */
export const WEIGHTS: Readonly<Record<OperationName, number>> = {
  sendStream: 22,
  sendJson: 12,
  sendWithKey: 10,
  edit: 8,
  reorder: 8,
  remove: 5,
  steer: 12,
  unsteer: 3,
  stop: 6,
  answer: 10,
  reload: 8,
  follow: 6,
  deleteSession: 0.5,
};

/** Everything that a client can do, by the names of the contract. */
export const OPERATIONS = {
  sendStream: (turn: Turn) => send(turn, null, true),
  sendJson: (turn: Turn) => send(turn, null, false),
  sendWithKey,
  edit,
  reorder,
  remove,
  steer,
  unsteer,
  stop,
  answer,
  reload,
  follow,
  deleteSession,
} as const;

/** How often an unanswered request with a key is made again. */
const TRIES = 12;

async function send(turn: Turn, key: string | null, asStream: boolean, text = newText(turn.name, turn.random)) {
  const { client, random, session } = turn;
  const action: Action & { kind: 'send' } = { kind: 'send', marker: turn.name, key, accepted: null };
  const headers = key === null ? {} : { 'idempotency-key': key };
  const call = { method: 'POST', path: '', body: { message: text, sessionId: session.id }, headers };
  const { outcome, body } = asStream
    ? await client.stream(random, session, action, call, 'send')
    : await client.request(random, session, action, call);
  if (outcome.kind === 'ok') action.accepted = acceptedIds(body);
  if (key === null) turn.chats.sent(session);
  return outcome;
}

/** Sends with a key, and again while nobody answers: the client of section 4. */
async function sendWithKey(turn: Turn): Promise<void> {
  const text = newText(turn.name, turn.random);
  turn.chats.sent(turn.session);
  for (let tries = 0; tries < TRIES; tries += 1) {
    const outcome = await send(turn, turn.name, turn.random.chance(0.5), text);
    if (isAnswered(outcome) && !turn.random.chance(0.1)) return;
    await sleep(Math.min(100 * 2 ** tries, 1_500));
  }
}

function isAnswered({ kind }: Outcome): boolean {
  return kind === 'ok' || kind === 'refused';
}

/** Reads the queue and picks an item of it. */
async function pickItem(
  { client, random, session }: Turn,
  fits: (item: QueueAnswer['items'][number]) => boolean = () => true,
): Promise<{ queue: QueueAnswer; queueId: string } | null> {
  const queue = await client.readQueue(random, session);
  const items = queue?.items.filter(fits) ?? [];
  return queue && items.length > 0 ? { queue, queueId: random.pick(items).id } : null;
}

async function edit(turn: Turn): Promise<void> {
  const { client, random, session, name } = turn;
  const queue = await client.readQueue(random, session);
  const items = (queue?.items ?? []) as unknown as { id: string; message: string }[];
  if (items.length === 0) return;
  const { id: queueId, message } = random.pick(items);
  const marker = /#m:([^#]+)#/.exec(message)?.[1] ?? '';
  const body = { message: newText(marker, random, name) };
  const call = { method: 'PATCH', path: `/${session.id}/queue/${queueId}`, body };
  await client.request(random, session, { kind: 'edit', queueId, edit: name }, call);
}

async function remove(turn: Turn): Promise<void> {
  const { client, random, session } = turn;
  const picked = await pickItem(turn);
  if (!picked) return;
  const { queueId } = picked;
  const call = { method: 'DELETE', path: `/${session.id}/queue/${queueId}` };
  await client.request(random, session, { kind: 'remove', queueId }, call);
}

async function reorder(turn: Turn): Promise<void> {
  const { client, random, session } = turn;
  const queue = await client.readQueue(random, session);
  const free = queue?.items.filter(({ steeringExecutionId }) => steeringExecutionId === null).map(({ id }) => id) ?? [];
  if (free.length < 2) return;
  const [queueId, targetQueueId] = [random.pick(free), random.pick(free)];
  const body = { targetQueueId, expectedQueueIds: free };
  const call = { method: 'POST', path: `/${session.id}/queue/${queueId}/reorder`, body };
  const done = await client.request(random, session, { kind: 'reorder', queueId, targetQueueId }, call);
  if (done.outcome.kind === 'ok') client.observe(session, done.body, done.operation, done.operation);
}

async function steer(turn: Turn): Promise<void> {
  const { client, random, session } = turn;
  const picked = await pickItem(turn, ({ steeringExecutionId }) => steeringExecutionId === null);
  const executionId = picked?.queue.steerableExecutionId;
  if (!picked || !executionId) return;
  const { queueId } = picked;
  const call = { method: 'POST', path: `/${session.id}/queue/${queueId}/steer`, body: { executionId } };
  const done = await client.request(random, session, { kind: 'steer', queueId, executionId }, call);
  if (done.outcome.kind === 'ok') client.observe(session, done.body, done.operation, null);
}

async function unsteer(turn: Turn): Promise<void> {
  const { client, random, session } = turn;
  const picked = await pickItem(turn, ({ steeringExecutionId }) => steeringExecutionId !== null);
  if (!picked) return;
  const { queueId } = picked;
  const call = { method: 'DELETE', path: `/${session.id}/queue/${queueId}/steer` };
  const done = await client.request(random, session, { kind: 'unsteer', queueId }, call);
  if (done.outcome.kind === 'ok') client.observe(session, done.body, done.operation, null);
}

/** Mostly of the newest execution, sometimes of an older one, which must stay what it is. */
async function stop({ client, random, session }: Turn): Promise<void> {
  const { executions } = session;
  const executionId = random.chance(0.8) ? executions.at(-1) : executions.at(-2);
  if (executionId === undefined) return;
  const action: Action & { kind: 'stop' } = { kind: 'stop', executionId, cancelRequested: null };
  const call = { method: 'DELETE', path: `/${session.id}/executions/${executionId}` };
  const { outcome, body } = await client.request(random, session, action, call);
  if (outcome.kind === 'ok') action.cancelRequested = body.cancelRequested === true;
}

async function answer({ client, random, session, name, ended }: Turn): Promise<void> {
  const suspension = session.suspensions.at(-1);
  if (!suspension) return;
  const approved = random.chance(0.7);
  const key = random.chance(0.5) ? name : null;
  const body = { ...suspension, resumeData: { approved } };
  const headers = key === null ? {} : { 'idempotency-key': key };
  const call = { method: 'POST', path: '/resume', body, headers };
  for (let tries = 0; tries < TRIES; tries += 1) {
    const action: Action = { kind: 'answer', toolCallId: suspension.toolCallId, approved, key };
    const { outcome } = random.chance(0.5)
      ? await client.stream(random, session, action, call, 'resume')
      : await client.request(random, session, action, call);
    if (isAnswered(outcome)) session.suspensions = session.suspensions.filter((one) => one !== suspension);
    if (isAnswered(outcome) || key === null) return;
    await sleep(Math.min(100 * 2 ** tries, 1_500), ended);
  }
}

/** What a tab does after a reload: the transcript, then the queue. */
async function reload({ client, random, session }: Turn): Promise<void> {
  const call = { method: 'GET', path: `/${session.id}/messages` };
  const { outcome, body } = await client.request(random, session, { kind: 'read', what: 'transcript' }, call);
  if (outcome.kind === 'ok') {
    sawExecution(session, body.activeExecutionId);
    session.suspensions = (body.openSuspensions as { runId: string; toolCallId: string }[]).map(
      ({ runId, toolCallId }) => ({ runId, toolCallId }),
    );
  }
  await client.readQueue(random, session);
}

async function follow({ client, random, session }: Turn): Promise<void> {
  const executionId = session.executions.at(random.chance(0.7) ? -1 : -2);
  if (executionId === undefined) return;
  const cursor = random.chance(0.6) ? session.cursors.get(executionId) : undefined;
  const headers = cursor === undefined ? {} : { 'last-event-id': cursor };
  const call = { method: 'GET', path: `/${session.id}/executions/${executionId}/events`, headers };
  await client.stream(random, session, null, call, 'follow', executionId);
}

async function deleteSession({ client, chats, random, session }: Turn): Promise<void> {
  const call = { method: 'DELETE', path: `/${session.id}` };
  const { outcome } = await client.request(random, session, { kind: 'delete' }, call);
  if (outcome.kind === 'ok' || outcome.kind === 'unknown') chats.leave(session);
}
