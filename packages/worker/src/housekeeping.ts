import { removeLooseObjects } from '@turnkeep/shared/attachments/loose-objects';
import type { AttachmentStore } from '@turnkeep/shared/attachments/store';
import { removeOrphans } from '@turnkeep/shared/chat/attachments';
import { finishDeletedAgent, unfinishedDeletions } from '@turnkeep/shared/chat/delete-agent';
import { forgetKeys } from '@turnkeep/shared/chat/idempotency';
import { removeInactive } from '@turnkeep/shared/chat/retention';
import type { Database } from '@turnkeep/shared/db/database';
import type { Log } from '@turnkeep/shared/log';
import type { Signals } from '@turnkeep/shared/redis/signals';

const EVERY_MS = 30_000;
const AT_ONCE = 500;
/** A session may hold much, and its removal is one transaction. */
const SESSIONS_AT_ONCE = 20;
/** Objects are removed over the network, so fewer at a time; a stop waits for no more than these. */
const OBJECTS_AT_ONCE = 40;

/**
 * What is past its time goes, a bounded number at a time: idempotency keys, attachments that no message named, objects that
 * no attachment names, sessions past their retention; and deletions are finished.
 */
export class Housekeeping {
  readonly #db: Database;
  readonly #signals: Signals;
  readonly #retentionDays: number | null;
  readonly #store: AttachmentStore;
  readonly #log: Log;
  #timer: NodeJS.Timeout | null = null;
  #working: Promise<void> = Promise.resolve();
  #busy = false;
  #stopping = false;

  constructor(db: Database, signals: Signals, retentionDays: number | null, store: AttachmentStore, log: Log) {
    this.#db = db;
    this.#signals = signals;
    this.#retentionDays = retentionDays;
    this.#store = store;
    this.#log = log;
  }

  /** Works at once: a worker that is started often does this often enough, too. */
  start(): void {
    const work = () => {
      if (this.#busy) return;
      this.#busy = true;
      this.#working = this.#work()
        .catch((error: unknown) => this.#log.warn({ error }, 'housekeeping failed'))
        .finally(() => {
          this.#busy = false;
        });
    };
    this.#timer = setInterval(work, EVERY_MS);
    work();
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    if (this.#timer) clearInterval(this.#timer);
    await this.#working;
  }

  async #work(): Promise<void> {
    await forgetKeys(this.#db, AT_ONCE);
    await removeOrphans(this.#db, AT_ONCE);
    await this.#retire();
    for (const agentId of await unfinishedDeletions(this.#db)) {
      const { marked } = await finishDeletedAgent(this.#db, agentId);
      for (const { workerId, executionId } of marked) await this.#signals.cancel(workerId, executionId);
    }
    await this.#removeObjects();
  }

  /** RETENTION_DAYS: sessions without activity for so long go, with all that belongs to them. */
  async #retire(): Promise<void> {
    if (this.#retentionDays === null) return;
    while (!this.#stopping && (await removeInactive(this.#db, this.#retentionDays, SESSIONS_AT_ONCE)) > 0);
  }

  /** Last: a store that is away takes its time to say so. */
  async #removeObjects(): Promise<void> {
    for (let left = AT_ONCE; left > 0 && !this.#stopping; left -= OBJECTS_AT_ONCE) {
      const { due, gone } = await removeLooseObjects(this.#db, this.#store, OBJECTS_AT_ONCE);
      if (gone < due)
        this.#log.warn({ due, gone }, 'some objects of attachments could not be removed; tried again later');
      if (due < OBJECTS_AT_ONCE || gone === 0) return;
    }
  }
}
