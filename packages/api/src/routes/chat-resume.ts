import Router from '@koa/router';
import { type AcceptedAnswer, acceptAnswer, findRun } from '@turnkeep/shared/chat/resume';
import { ResumeRequest } from '@turnkeep/shared/contract/chat';
import { isUuid } from '@turnkeep/shared/contract/ids';
import { accept, compile } from '@turnkeep/shared/contract/validate';
import type { ChatDeps } from '../deps.js';
import { readJson } from '../http/body.js';
import type { Ctx, State } from '../http/context.js';
import type { AgentAccess, Guard } from '../http/guard.js';
import { checkAnswer } from '../http/incoming-message.js';
import { found, notFound } from '../http/not-found.js';
import { sessionRef } from '../http/session-path.js';
import { streamResume } from '../sse/turn-stream.js';
import { AGENT, readIdempotencyKey, requireEnabled, wantsJson } from './chat.js';

const checkResume = compile(ResumeRequest);

/** Answers to calls that wait for a person (contract, section 5). */
export function resumeRoutes(deps: ChatDeps, guard: Guard): Router<State> {
  const router = new Router<State>();
  router.post(`${AGENT}/chat/resume`, async (ctx) => {
    const access = await guard.agent(ctx, 'agent:execute');
    requireEnabled(deps);
    const submit = await readAnswer(deps, ctx, access);
    if (!wantsJson(ctx)) return answerStream(deps, ctx, access, submit);
    const { sessionId, runId, toolCallId, remaining } = await submit();
    ctx.status = 202;
    ctx.body = { sessionId, runId, toolCallId, remaining };
  });
  return router;
}

type Submit = () => Promise<AcceptedAnswer>;

async function readAnswer(deps: ChatDeps, ctx: Ctx, access: AgentAccess): Promise<Submit> {
  const body = await readJson(ctx, deps.config.limits.maxRequestBytes);
  // A run that is not the caller's is 404 before anything else about the body is said (section 2).
  const runId = typeof body === 'object' && body !== null && 'runId' in body ? body.runId : undefined;
  const sessionId =
    typeof runId === 'string' && isUuid(runId)
      ? found(await findRun(deps.db, sessionRef(access, ''), runId.toLowerCase()))
      : null;
  const request = accept(checkResume(body), 'The body');
  checkAnswer(request.resumeData, deps.config.limits.maxMessageChars);
  const idempotency = readIdempotencyKey(ctx, body);
  if (sessionId === null) throw notFound();
  const session = sessionRef(access, sessionId);
  return async () => {
    const accepted = await acceptAnswer(
      deps.db,
      session,
      { ...request, runId: request.runId.toLowerCase() },
      idempotency,
    );
    if (!accepted.repeated) announce(deps, session, accepted);
    return accepted;
  };
}

function announce(
  { turnQueue, signals }: ChatDeps,
  session: ReturnType<typeof sessionRef>,
  { remaining, executionId }: AcceptedAnswer,
): void {
  if (remaining === 0) void turnQueue.wake({ sessionId: session.sessionId, agentId: session.agentId });
  void signals.executionChanged(session, executionId);
}

async function answerStream(deps: ChatDeps, ctx: Ctx, access: AgentAccess, submit: Submit): Promise<void> {
  const { streams, waiting } = deps;
  const place = await streams.takePlace(access.userId);
  try {
    const accepted = await submit();
    const stream = place.open(ctx, { ...access, projectId: access.projectId }, 'waiting');
    const wait = waiting.wait(accepted.sessionId, accepted.checkpointId);
    if (streams.isDraining) stream.connection.end();
    const streaming = streamResume(deps, stream, accepted, wait);
    // The continuation may have started before the wait began.
    await wait.ready;
    await waiting.look([accepted.checkpointId]).catch(() => {});
    await streaming;
  } catch (error) {
    place.giveUp();
    throw error;
  }
}
