import { readConfig } from '@turnkeep/shared/config';
import { createLog } from '@turnkeep/shared/log';
import { startWorker, type WorkerPoint } from '../../packages/worker/src/worker.js';
import type { FromWorker, Order } from './points.js';

/**
 * A worker whose parent can hold or kill it at named points: the product's own worker, with a `point` that obeys orders.
 * The parent's half is `PointedWorker`.
 */
const orders: { order: Order; hits: number }[] = [];
const held = new Map<string, () => void>();

function tell(message: FromWorker): void {
  process.send?.(message);
}

process.on('message', (message: Order | { kind: 'release'; id: string }) => {
  if (message.kind === 'release') {
    held.get(message.id)?.();
    held.delete(message.id);
    return;
  }
  orders.push({ order: message, hits: 0 });
  tell({ kind: 'armed', id: message.id });
});

async function point(name: WorkerPoint): Promise<void> {
  const waiting = orders.filter(({ order }) => order.point === name);
  for (const entry of waiting) {
    entry.hits += 1;
    if (entry.hits !== entry.order.nth) continue;
    orders.splice(orders.indexOf(entry), 1);
    await obey(entry.order);
  }
}

async function obey({ id, kind }: Order): Promise<void> {
  if (kind === 'kill') process.kill(process.pid, 'SIGKILL');
  await new Promise<void>((resolve) => {
    held.set(id, resolve);
    tell({ kind: 'held', id });
  });
}

const config = readConfig(process.env);
const log = createLog('worker', config.logLevel);
const worker = await startWorker(config, log, point);
// Its parent is gone, and with it whoever could release or stop it.
process.on('disconnect', () => process.exit(1));
process.on('SIGTERM', () => void worker.stop(config.shutdownGraceMs).then(() => process.exit(0)));
log.info({ port: worker.port, workerId: worker.workerId }, 'listening');
