import Router from '@koa/router';
import { findAgent, listAgents } from '@turnkeep/shared/agents/agents';
import { createAgent, replaceAgent } from '@turnkeep/shared/agents/save-agent';
import { type DeletedAgent, deleteAgent } from '@turnkeep/shared/chat/delete-agent';
import { CreateAgent } from '@turnkeep/shared/contract/agent';
import { accept, compile } from '@turnkeep/shared/contract/validate';
import type { Signals } from '@turnkeep/shared/redis/signals';
import type { Deps } from '../deps.js';
import { readJson } from '../http/body.js';
import type { State } from '../http/context.js';
import type { Guard } from '../http/guard.js';
import { found } from '../http/not-found.js';

const checkAgent = compile(CreateAgent);
const AGENTS = '/projects/:projectId/agents/v2';

/** Agents (contract, section 3). */
export function agentRoutes({ db, config, signals }: Deps, guard: Guard): Router<State> {
  const router = new Router<State>();
  const { maxRequestBytes } = config.limits;

  router.post(AGENTS, async (ctx) => {
    const { projectId } = await guard.project(ctx, 'agent:write');
    const request = accept(checkAgent(await readJson(ctx, maxRequestBytes)), 'The body');
    ctx.body = await createAgent(db, projectId, request);
    ctx.status = 201;
  });

  router.get(AGENTS, async (ctx) => {
    const { projectId } = await guard.project(ctx, 'agent:read');
    ctx.body = { agents: await listAgents(db, projectId) };
  });

  router.get(`${AGENTS}/:agentId`, async (ctx) => {
    const { projectId, agent } = await guard.agent(ctx, 'agent:read');
    ctx.body = found(await findAgent(db, projectId, agent.id));
  });

  router.put(`${AGENTS}/:agentId`, async (ctx) => {
    const { projectId, agent } = await guard.agent(ctx, 'agent:write');
    const request = accept(checkAgent(await readJson(ctx, maxRequestBytes)), 'The body');
    ctx.body = found(await replaceAgent(db, projectId, agent.id, request));
  });

  router.delete(`${AGENTS}/:agentId`, async (ctx) => {
    const { projectId, agent } = await guard.agent(ctx, 'agent:write');
    await announceDeletion(signals, found(await deleteAgent(db, projectId, agent.id)));
    ctx.body = { deleted: true };
  });

  return router;
}

/** Tells the workers of what was marked, and the streams of what was removed. What gets lost is found in Postgres. */
async function announceDeletion(signals: Signals, { marked, removed }: DeletedAgent): Promise<void> {
  await Promise.all([
    ...marked.map(({ workerId, executionId }) => signals.cancel(workerId, executionId)),
    ...removed.flatMap(({ session, queueIds, checkpointIds }) => [
      ...queueIds.map((id) => signals.outcome(session.sessionId, id, 'removed', null)),
      ...checkpointIds.map((id) => signals.outcome(session.sessionId, id, 'cancelled', null)),
      signals.queueChanged(session),
    ]),
  ]);
}
