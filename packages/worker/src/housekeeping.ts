import { removeOrphans } from '@turnkeep/shared/chat/attachments';
import { finishDeletedAgent, unfinishedDeletions } from '@turnkeep/shared/chat/delete-agent';
import { forgetKeys } from '@turnkeep/shared/chat/idempotency';
import type { Database } from '@turnkeep/shared/db/database';
import type { Log } from '@turnkeep/shared/log';
import type { Signals } from '@turnkeep/shared/redis/signals';

const EVERY_MS = 30_000;
const AT_ONCE = 500;

/** What is past its time goes, a bounded number at a time: idempotency keys, attachments that no message named; and deletions are finished. */
export class Housekeeping {
  readonly #db: Database;
  readonly #signals: Signals;
  readonly #log: Log;
  #timer: NodeJS.Timeout | null = null;
  #working: Promise<void> = Promise.resolve();

  constructor(db: Database, signals: Signals, log: Log) {
    this.#db = db;
    this.#signals = signals;
    this.#log = log;
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#working = this.#work().catch((error: unknown) => this.#log.warn({ error }, 'housekeeping failed'));
    }, EVERY_MS);
  }

  async stop(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    await this.#working;
  }

  async #work(): Promise<void> {
    await forgetKeys(this.#db, AT_ONCE);
    await removeOrphans(this.#db, AT_ONCE);
    for (const agentId of await unfinishedDeletions(this.#db)) {
      const { marked } = await finishDeletedAgent(this.#db, agentId);
      for (const { workerId, executionId } of marked) await this.#signals.cancel(workerId, executionId);
    }
  }
}
