import Router from '@koa/router';
import { acceptMessage } from '@turnkeep/shared/chat/accept';
import { type IncomingAttachment, withBytesStored } from '@turnkeep/shared/chat/attachments';
import { hashRequest, type IdempotencyKey, isKeyUsed } from '@turnkeep/shared/chat/idempotency';
import { findSession } from '@turnkeep/shared/chat/sessions';
import { ChatRequest } from '@turnkeep/shared/contract/chat';
import { isUuid, newId } from '@turnkeep/shared/contract/ids';
import { ProblemError } from '@turnkeep/shared/contract/problems';
import { accept, compile } from '@turnkeep/shared/contract/validate';
import type { ChatDeps } from '../deps.js';
import { readJson } from '../http/body.js';
import type { Ctx, State } from '../http/context.js';
import type { AgentAccess, Guard } from '../http/guard.js';
import { readMessage } from '../http/incoming-message.js';
import { notFound } from '../http/not-found.js';
import { sessionRef } from '../http/session-path.js';
import { streamMessage } from '../sse/turn-stream.js';

export const AGENT = '/projects/:projectId/agents/v2/:agentId';
const checkChat = compile(ChatRequest);

/** Sending (contract, section 4). */
export function sendRoutes(deps: ChatDeps, guard: Guard): Router<State> {
  const router = new Router<State>();
  router.post(`${AGENT}/chat`, async (ctx) => {
    const access = await guard.agent(ctx, 'agent:execute');
    requireEnabled(deps);
    const submission = await readSubmission(deps, ctx, access);
    if (wantsJson(ctx)) await answerAccepted(deps, ctx, submission);
    else await answerStream(deps, ctx, access, submission);
  });
  return router;
}

/** AGENTS_ENABLED=false: nothing new is accepted (section 9.11). */
export function requireEnabled({ config }: ChatDeps): void {
  if (!config.agentsEnabled) throw new ProblemError('agents_disabled', 'Agents are switched off on this server.');
}

/** Whether the client wants an answer instead of a stream. */
export function wantsJson(ctx: Ctx): boolean {
  return ctx.accepts('text/event-stream', 'application/json') === 'application/json';
}

/** The `Idempotency-Key` of a request with the hash of what it came with (section 4); null where it has none. */
export function readIdempotencyKey(ctx: Ctx, body: unknown): IdempotencyKey | null {
  const key = ctx.req.headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key !== 'string' || key.length < 1 || key.length > 255)
    throw new ProblemError('invalid_request', 'The Idempotency-Key must have 1 to 255 characters.');
  return { key, hash: hashRequest(`${ctx.method} ${ctx.path.toLowerCase()}`, body) };
}

type Submission = Omit<Parameters<typeof acceptMessage>[1], 'maxPending' | 'attachments'> & {
  attachments: IncomingAttachment[];
};

async function readSubmission(deps: ChatDeps, ctx: Ctx, access: AgentAccess): Promise<Submission> {
  const { limits } = deps.config;
  const body = await readJson(ctx, limits.maxRequestBytes);
  await refuseForeignSession(deps, ctx, access, body);
  const request = accept(checkChat(body), 'The body');
  const idempotency = readIdempotencyKey(ctx, body);
  const message = await readMessage(request, limits);
  const session = sessionRef(access, request.sessionId?.toLowerCase() ?? newId());
  return { session, queueId: newId(), ...message, idempotency };
}

/**
 * A session that is not the caller's is 404 before anything else about the body is said (section 2). A repeated request is
 * answered as at first, also where its session was deleted since (section 4).
 */
async function refuseForeignSession({ db }: ChatDeps, ctx: Ctx, access: AgentAccess, body: unknown): Promise<void> {
  const sessionId = typeof body === 'object' && body !== null && 'sessionId' in body ? body.sessionId : undefined;
  if (typeof sessionId !== 'string' || !isUuid(sessionId)) return;
  const state = await findSession(db, sessionRef(access, sessionId.toLowerCase()));
  if (state === 'hidden' && !(await isKeyUsed(db, access.userId, ctx.get('idempotency-key')))) throw notFound();
}

async function commit({ db, attachmentStore, config }: ChatDeps, submission: Submission) {
  const { maxPending } = config.limits;
  return withBytesStored(db, attachmentStore, submission.attachments, (attachments) =>
    acceptMessage(db, { ...submission, attachments, maxPending }),
  );
}

/** Wakes a worker and tells the user's browsers. What gets lost on the way is found in Postgres. */
function announce({ turnQueue, signals }: ChatDeps, { session }: Submission, sessionId: string): void {
  const ref = { ...session, sessionId };
  void turnQueue.wake({ sessionId, agentId: ref.agentId });
  void signals.queueChanged(ref);
}

async function answerAccepted(deps: ChatDeps, ctx: Ctx, submission: Submission): Promise<void> {
  const { repeated, ...accepted } = await commit(deps, submission);
  if (!repeated) announce(deps, submission, accepted.sessionId);
  ctx.status = 202;
  ctx.body = accepted;
}

/**
 * The stream's place is taken, and the wait for the item begun, before the commit: a refusal changes nothing, and nothing
 * that happens to the item is missed.
 */
async function answerStream(deps: ChatDeps, ctx: Ctx, access: AgentAccess, submission: Submission): Promise<void> {
  const { streams, waiting } = deps;
  const place = await streams.takePlace(access.userId);
  let wait = waiting.wait(submission.session.sessionId, submission.queueId);
  try {
    const [accepted] = await Promise.all([commit(deps, submission), wait.ready]);
    if (accepted.repeated) {
      wait.close();
      wait = waiting.wait(accepted.sessionId, accepted.queueId);
      await wait.ready;
    } else announce(deps, submission, accepted.sessionId);
    const stream = place.open(ctx, access, 'waiting');
    const streaming = streamMessage(deps, stream, accepted, wait);
    if (accepted.repeated) await waiting.look([accepted.queueId]).catch(() => {});
    if (streams.isDraining) stream.connection.end();
    await streaming;
  } catch (error) {
    wait.close();
    place.giveUp();
    throw error;
  }
}
