import type { Next } from 'koa';
import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client';
import type { Ctx } from '../http/context.js';

/** The metrics of this process; what else has something to count takes the registry. */
export interface Metrics {
  registry: Registry;
  /** Counts a request under its route's pattern, never its path: an id would be a series of its own. */
  middleware(ctx: Ctx, next: Next): Promise<void>;
}

/** Metrics of the process itself and of its HTTP requests. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const labelNames = ['method', 'route', 'status'] as const;
  const requests = new Counter({
    name: 'turnkeep_http_requests_total',
    help: 'HTTP requests answered, by method, route and status.',
    labelNames,
    registers: [registry],
  });
  const durations = new Histogram({
    name: 'turnkeep_http_request_duration_seconds',
    help: 'Time to an HTTP answer; event streams, which last, are not in it.',
    labelNames,
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers: [registry],
  });
  return {
    registry,
    async middleware(ctx, next) {
      const start = performance.now();
      await next();
      const labels = { method: methodOf(ctx), route: ctx._matchedRoute?.toString() ?? 'other', status: ctx.status };
      requests.inc(labels);
      if (!isStream(ctx)) durations.observe(labels, (performance.now() - start) / 1000);
    },
  };
}

/** Methods that clients make up do not become series. */
function methodOf(ctx: Ctx): string {
  return ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'].includes(ctx.method) ? ctx.method : 'other';
}

function isStream(ctx: Ctx): boolean {
  const type = ctx.respond === false ? ctx.res.getHeader('content-type') : ctx.response.get('content-type');
  return String(type).startsWith('text/event-stream');
}
