import Router from '@koa/router';
import { deleteSession } from '@turnkeep/shared/chat/delete-session';
import { readMarks } from '@turnkeep/shared/chat/events-from-record';
import { hasExecution, listExecutions, listSessions, readToolCall } from '@turnkeep/shared/chat/sessions';
import { requestStop } from '@turnkeep/shared/chat/stop';
import { readTranscript } from '@turnkeep/shared/chat/transcript';
import { readPage } from '@turnkeep/shared/contract/paging';
import { accept } from '@turnkeep/shared/contract/validate';
import type { HeldLock } from '@turnkeep/shared/redis/chat-lock';
import type { ChatDeps } from '../deps.js';
import type { Ctx, State } from '../http/context.js';
import type { Guard } from '../http/guard.js';
import { found, notFound, pathId } from '../http/not-found.js';
import { ownSession } from '../http/session-path.js';
import { type Cursor, parseCursor } from '../sse/cursor.js';
import { follow } from '../sse/turn-stream.js';
import { AGENT } from './chat.js';

/** How long Stop waits for an admission that is under way (contract, section 9.4), in ms. */
const STOP_WAIT_MS = 2_000;

/** Reading sessions, following, Stop, deleting (contract, sections 4 and 5). */
export function sessionRoutes(deps: ChatDeps, guard: Guard): Router<State> {
  const { db } = deps;
  const router = new Router<State>();
  const thread = `${AGENT}/chat/:threadId`;
  const execution = `${thread}/executions/:executionId`;

  router.get(`${AGENT}/chat`, async (ctx) => {
    const { agent, userId } = await guard.agent(ctx, 'agent:read');
    ctx.body = { sessions: await listSessions(db, { agentId: agent.id, userId }, pageOf(ctx)) };
  });

  router.delete(thread, async (ctx) => {
    const { session } = await ownSession(db, guard, ctx, 'agent:execute');
    const { queueIds, checkpointIds } = await deleteSession(db, session);
    for (const id of queueIds) void deps.signals.outcome(session.sessionId, id, 'removed', null);
    for (const id of checkpointIds) void deps.signals.outcome(session.sessionId, id, 'cancelled', null);
    void deps.signals.queueChanged(session);
    ctx.body = { deleted: true };
  });

  router.get(`${thread}/messages`, async (ctx) => {
    const { session } = await ownSession(db, guard, ctx, 'agent:read');
    ctx.body = await readTranscript(db, session.sessionId, pageOf(ctx));
  });

  router.get(`${thread}/executions`, async (ctx) => {
    const { session } = await ownSession(db, guard, ctx, 'agent:read');
    ctx.body = { executions: await listExecutions(db, session.sessionId) };
  });

  router.delete(execution, async (ctx) => {
    const { session } = await ownSession(db, guard, ctx, 'agent:execute');
    ctx.body = { cancelRequested: await stop(deps, session, found(pathId(ctx.params.executionId))) };
  });

  router.get(`${execution}/tool-calls/:toolCallId`, async (ctx) => {
    const { session } = await ownSession(db, guard, ctx, 'agent:read');
    const executionId = found(pathId(ctx.params.executionId));
    ctx.body = found(await readToolCall(db, session.sessionId, executionId, ctx.params.toolCallId ?? ''));
  });

  router.get(`${execution}/events`, async (ctx) => {
    const { access, session } = await ownSession(db, guard, ctx, 'agent:read');
    const executionId = found(pathId(ctx.params.executionId));
    if (!(await hasExecution(db, session.sessionId, executionId))) throw notFound();
    const place = await deps.streams.takePlace(access.userId);
    try {
      const after = await knownCursor(deps, session.sessionId, executionId, ctx.get('last-event-id'));
      const stream = place.open(ctx, access, 'following');
      await follow(deps, stream, { sessionId: session.sessionId, executionId, after, from: 'anywhere' });
      stream.connection.end();
    } catch (error) {
      place.giveUp();
      throw error;
    }
  });

  return router;
}

function pageOf(ctx: Ctx): { before: string | null; limit: number } {
  const { before, limit } = accept(readPage(ctx.query), 'The query');
  return { before: before ?? null, limit };
}

/**
 * Stop waits for an admission that is under way, so that its cancel handle is registered; at most two seconds, and not at
 * all where Redis is away: the committed mark alone does then.
 */
async function stop(
  { db, chatLock, signals, turnQueue }: ChatDeps,
  session: Parameters<typeof requestStop>[1],
  executionId: string,
): Promise<boolean> {
  const lock: HeldLock | null = await chatLock.acquire(session.sessionId, STOP_WAIT_MS).catch(() => null);
  try {
    const { cancelRequested, workerId, checkpointId, ready } = await requestStop(db, session, executionId);
    if (workerId !== null) void signals.cancel(workerId, executionId);
    if (checkpointId !== null) void signals.outcome(session.sessionId, checkpointId, 'cancelled', executionId);
    if (ready) void turnQueue.wake({ sessionId: session.sessionId, agentId: session.agentId });
    if (cancelRequested) {
      void signals.executionChanged(session, executionId);
      void signals.queueChanged(session);
    }
    return cancelRequested;
  } finally {
    void lock?.release();
  }
}

const START: Cursor = { n: 0, sub: 0 };

/** The cursor that a client sent; one of another execution, or from the future, counts as none. */
async function knownCursor(
  { db, events }: ChatDeps,
  sessionId: string,
  executionId: string,
  text: string,
): Promise<Cursor> {
  const cursor = parseCursor(executionId, text);
  if (cursor === null) return START;
  const [mark] = await readMarks(db, [executionId]);
  if (!mark) return START;
  const known = mark.finalN ?? Math.max(mark.recordedN, await events.lastNumber(sessionId, executionId));
  return cursor.n > known ? START : cursor;
}
