import Router from '@koa/router';
import { editItem } from '@turnkeep/shared/chat/edit';
import { giveBackSteer } from '@turnkeep/shared/chat/give-back-steer';
import { findItem } from '@turnkeep/shared/chat/queue-item';
import { readQueue } from '@turnkeep/shared/chat/read-queue';
import type { SessionRef } from '@turnkeep/shared/chat/refs';
import { removeItem } from '@turnkeep/shared/chat/remove';
import { type QueueChange, reorderItem } from '@turnkeep/shared/chat/reorder';
import { reserveSteer } from '@turnkeep/shared/chat/reserve-steer';
import { QueueEdit, QueueReorder, QueueSteer } from '@turnkeep/shared/contract/chat';
import { accept, compile } from '@turnkeep/shared/contract/validate';
import type { ChatDeps } from '../deps.js';
import { readJson } from '../http/body.js';
import type { Ctx, State } from '../http/context.js';
import type { Guard } from '../http/guard.js';
import { checkText } from '../http/incoming-message.js';
import { found, pathId } from '../http/not-found.js';
import { ownSession } from '../http/session-path.js';
import { AGENT } from './chat.js';

const checkEdit = compile(QueueEdit);
const checkReorder = compile(QueueReorder);
const checkSteer = compile(QueueSteer);

/**
 * The queue of a session (contract, section 6). Changes go on while AGENTS_ENABLED is false (section 9.11): they start
 * nothing.
 */
export function queueRoutes(deps: ChatDeps, guard: Guard): Router<State> {
  const { db, config, signals } = deps;
  const router = new Router<State>();
  const queue = `${AGENT}/chat/:threadId/queue`;

  router.get(queue, async (ctx) => {
    const { session } = await ownSession(db, guard, ctx, 'agent:read');
    ctx.body = await readQueue(db, session.sessionId);
  });

  router.patch(`${queue}/:queueId`, async (ctx) => {
    const { session, queueId } = await ownItem(deps, guard, ctx);
    const { message } = accept(checkEdit(await readJson(ctx, config.limits.maxRequestBytes)), 'The body');
    checkText(message, config.limits.maxMessageChars);
    ctx.body = await editItem(db, session.sessionId, queueId, message);
    void signals.queueChanged(session);
  });

  router.delete(`${queue}/:queueId`, async (ctx) => {
    const { session, queueId } = await ownItem(deps, guard, ctx);
    await removeItem(db, session.sessionId, queueId);
    void signals.outcome(session.sessionId, queueId, 'removed', null);
    void signals.queueChanged(session);
    ctx.body = { removed: true };
  });

  router.post(`${queue}/:queueId/reorder`, async (ctx) => {
    const { session, queueId } = await ownItem(deps, guard, ctx);
    const body = accept(checkReorder(await readJson(ctx, config.limits.maxRequestBytes)), 'The body');
    const change = await reorderItem(db, session.sessionId, {
      queueId,
      targetQueueId: body.targetQueueId.toLowerCase(),
      expectedQueueIds: body.expectedQueueIds.map((id) => id.toLowerCase()),
    });
    answer(deps, ctx, session, change);
  });

  router.post(`${queue}/:queueId/steer`, async (ctx) => {
    const { session, queueId } = await ownItem(deps, guard, ctx);
    const body = accept(checkSteer(await readJson(ctx, config.limits.maxRequestBytes)), 'The body');
    const executionId = body.executionId.toLowerCase();
    const change = await reserveSteer(db, session.sessionId, queueId, executionId);
    answer(deps, ctx, session, change);
    if (change.changed) void signals.executionChanged(session, executionId);
  });

  router.delete(`${queue}/:queueId/steer`, async (ctx) => {
    const { session, queueId } = await ownItem(deps, guard, ctx);
    answer(deps, ctx, session, await giveBackSteer(db, session.sessionId, queueId));
  });

  return router;
}

/** An item that is or was in the path's session: 404 comes before anything is said of the body (section 2). */
async function ownItem({ db }: ChatDeps, guard: Guard, ctx: Ctx): Promise<{ session: SessionRef; queueId: string }> {
  const { session } = await ownSession(db, guard, ctx, 'agent:execute');
  const { id } = await findItem(db, session.sessionId, found(pathId(ctx.params?.queueId)));
  return { session, queueId: id };
}

function answer({ signals }: ChatDeps, ctx: Ctx, session: SessionRef, { queue, changed }: QueueChange): void {
  if (changed) void signals.queueChanged(session);
  ctx.body = queue;
}
