import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Database } from '@turnkeep/shared/db/database';
import type { Redis } from 'ioredis';
import type { Registry } from 'prom-client';

/** How long a check may take before what it asks counts as away, in ms. */
const CHECK_MS = 2_000;

export interface OpsDeps {
  db: Database;
  redis: Redis;
  registry: Registry;
  isDraining: () => boolean;
}

/** The worker's own port: health, readiness, metrics (contract, section 1). */
export class Ops {
  readonly #deps: OpsDeps;
  readonly #server: Server;

  constructor(deps: OpsDeps) {
    this.#deps = deps;
    this.#server = createServer((request, response) => {
      this.#answer(request.url ?? '/').then(
        ({ status, type, body }) =>
          response
            .writeHead(status, {
              'Content-Type': type,
              'Cache-Control': 'no-store',
              'X-Content-Type-Options': 'nosniff',
            })
            .end(body),
        () => response.writeHead(500).end(),
      );
    });
  }

  /** Listens; answers the port. */
  async start(host: string, port: number): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, resolve);
    });
    return (this.#server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(url: string): Promise<{ status: number; type: string; body: string }> {
    const [path] = url.split('?');
    if (path === '/healthz') return json(200, { status: 'ok' });
    if (path === '/readyz') return this.#ready();
    if (path === '/metrics') {
      const { registry } = this.#deps;
      return { status: 200, type: registry.contentType, body: await registry.metrics() };
    }
    return json(404, { status: 'not found' });
  }

  async #ready(): Promise<{ status: number; type: string; body: string }> {
    const [postgres, redis] = await Promise.all([
      within(this.#deps.db.query('select 1')),
      within(this.#deps.redis.ping()),
    ]);
    const draining = this.#deps.isDraining();
    const ready = postgres && !draining;
    const status = !ready ? 'unavailable' : redis ? 'ok' : 'degraded';
    return json(ready ? 200 : 503, { status, postgres: word(postgres), redis: word(redis), draining });
  }
}

/** As a main says it. */
function word(isUp: boolean): 'up' | 'away' {
  return isUp ? 'up' : 'away';
}

function json(status: number, body: unknown): { status: number; type: string; body: string } {
  return { status, type: 'application/json; charset=utf-8', body: JSON.stringify(body) };
}

async function within(check: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), CHECK_MS);
  });
  return Promise.race([
    check.then(
      () => true,
      () => false,
    ),
    late,
  ]).finally(() => clearTimeout(timer));
}
