import { fileURLToPath } from 'node:url';
import type Router from '@koa/router';
import Koa from 'koa';
import { sessionRoutes } from './auth/session.js';
import type { ChatDeps } from './deps.js';
import type { Ctx, State } from './http/context.js';
import { createGuard, type Guard } from './http/guard.js';
import { notFound } from './http/not-found.js';
import { pageHeaders } from './http/page-headers.js';
import { problems } from './http/problems.js';
import { withoutPrefix } from './http/public-url.js';
import { requestId } from './http/request-id.js';
import { staticFiles } from './http/static-files.js';
import { bullBoard, isBullBoard } from './ops/bull-board.js';
import { healthRoutes } from './ops/health.js';
import { adminRoutes } from './routes/admin.js';
import { agentRoutes } from './routes/agents.js';
import { sendRoutes } from './routes/chat.js';
import { attachmentRoutes } from './routes/chat-attachments.js';
import { resumeRoutes } from './routes/chat-resume.js';
import { sessionRoutes as chatSessionRoutes } from './routes/chat-sessions.js';
import { credentialRoutes } from './routes/credentials.js';
import { projectRoutes } from './routes/projects.js';
import { pushRoutes } from './routes/push.js';
import { queueRoutes } from './routes/queue.js';

const PAGE = fileURLToPath(new URL('../static/', import.meta.url));

/**
 * The main as one Koa application. The order is the point: what is open to anybody, then Bull Board, then the routes,
 * which each ask the guard first; what is left is 404, and 401 before that.
 */
export function createApp(deps: ChatDeps): Koa<State> {
  const { config, log, metrics, isDraining } = deps;
  const guard = createGuard(deps);
  const app = new Koa<State>({ proxy: config.trustProxy });
  // Streams whose reader left, most of all; what a request throws is answered and logged by `problems`.
  app.on('error', (error: Error) => log.debug({ error }, 'response broke off'));

  app.use(metrics.middleware);
  app.use(requestId(log, isDraining));
  app.use(problems(log));
  app.use(withoutPrefix(config.publicUrl));
  app.use(routes(healthRoutes(deps)));
  app.use(staticFiles(PAGE, pageHeaders()));
  const headers = pageHeaders();
  app.use((ctx, next) => (isBullBoard(ctx.path) ? headers(ctx, next) : next()));
  app.use(bullBoard(deps, guard));
  for (const router of allRoutes(deps, guard)) app.use(routes(router));
  app.use(async (ctx: Ctx) => {
    await guard.anyone(ctx);
    throw notFound();
  });
  return app;
}

function allRoutes(deps: ChatDeps, guard: Guard): Router<State>[] {
  return [
    sessionRoutes(deps, guard),
    projectRoutes(deps, guard),
    agentRoutes(deps, guard),
    credentialRoutes(deps, guard),
    adminRoutes(deps, guard),
    sendRoutes(deps, guard),
    resumeRoutes(deps, guard),
    attachmentRoutes(deps, guard),
    chatSessionRoutes(deps, guard),
    queueRoutes(deps, guard),
    pushRoutes(deps, guard),
  ];
}

function routes(router: Router<State>): Koa.Middleware<State> {
  return router.routes() as unknown as Koa.Middleware<State>;
}
