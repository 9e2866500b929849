import { Redis } from 'ioredis';

/** How long one command may take before it counts as failed, in ms. */
const COMMAND_MS = 2_000;

const common = {
  connectTimeout: 2_000,
  keepAlive: 10_000,
  retryStrategy: (attempt: number) => Math.min(50 * 2 ** Math.min(attempt, 5), 1_000),
  // A failover leaves a connection on a server that became a replica: connect anew, the name may resolve elsewhere now.
  reconnectOnError: (error: Error) => (error.message.startsWith('READONLY') ? 2 : false),
} as const;

/**
 * A connection for commands that must never wait for a Redis that is away: what cannot be sent now fails now, what is
 * not answered within two seconds fails then. Every caller has Postgres behind it.
 */
export function commandConnection(url: string, onError: (error: Error) => void): Redis {
  return listen(
    new Redis(url, { ...common, commandTimeout: COMMAND_MS, enableOfflineQueue: false, maxRetriesPerRequest: 0 }),
    onError,
  );
}

/**
 * A connection that blocks (XREAD) or subscribes: it waits for Redis for as long as that takes. One that hears nothing for
 * `silentMs` (a Redis that is frozen, a cable that was pulled) is thrown away and made anew; 0: never.
 */
export function patientConnection(url: string, onError: (error: Error) => void, silentMs = 0): Redis {
  const watchdog = silentMs > 0 ? { socketTimeout: silentMs } : {};
  return listen(new Redis(url, { ...common, ...watchdog, maxRetriesPerRequest: null }), onError);
}

function listen(redis: Redis, onError: (error: Error) => void): Redis {
  return redis.on('error', onError);
}

/** Resolves when `redis` is ready or `ms` have passed; answers which. */
export async function isReady(redis: Redis, ms: number): Promise<boolean> {
  if (redis.status === 'ready') return true;
  return new Promise((resolve) => {
    const settle = (ready: boolean) => {
      clearTimeout(timer);
      redis.off('ready', onReady);
      resolve(ready);
    };
    const onReady = () => settle(true);
    const timer = setTimeout(() => settle(false), ms);
    redis.once('ready', onReady);
  });
}
