import { changedSessions } from '@turnkeep/shared/chat/changed-sessions';
import type { Notification } from '@turnkeep/shared/contract/notifications';
import type { Query } from '@turnkeep/shared/db/database';
import { channels } from '@turnkeep/shared/redis/keys';
import type { SignalListener, Update } from '@turnkeep/shared/redis/signals';
import type { SseConnection } from './connection.js';

/** At most four notifications a second for a session (contract, section 7): this far apart, in ms. */
const APART_MS = 250;
/** How long `connected` waits for Redis to confirm the subscription, in ms. */
const SUBSCRIBE_MS = 1_000;

/** What is to be announced of one session, each kind once, the newest state. */
interface Pending {
  updates: Map<Update['of'], Update>;
  timer: NodeJS.Timeout | null;
  sentAt: number;
}

/** One `/push` stream: a user's notifications, joined where they come too fast. */
export class NotificationStream {
  readonly #connection: SseConnection;
  readonly #sessions = new Map<string, Pending>();

  constructor(connection: SseConnection) {
    this.#connection = connection;
    connection.onClose(() => this.#stop());
  }

  /** Announces a change now, or as soon as the last one of that session is long enough ago. */
  update(update: Update): void {
    if (this.#connection.closed) return;
    const pending = this.#sessions.get(update.threadId) ?? { updates: new Map(), timer: null, sentAt: -Infinity };
    this.#sessions.set(update.threadId, pending);
    // Setting a kind again keeps its place: the one that has waited longest goes first.
    pending.updates.set(update.of, update);
    this.#send(update.threadId, pending);
  }

  #send(threadId: string, pending: Pending): void {
    if (pending.timer) return;
    // A reader that is behind is waited for, and dropped in the end; meanwhile the newest state of each session is kept.
    if (!this.#connection.keepsUp) void this.#connection.writable();
    const wait = this.#connection.keepsUp ? pending.sentAt + APART_MS - performance.now() : APART_MS;
    if (wait > 0) {
      pending.timer = setTimeout(() => {
        pending.timer = null;
        this.#send(threadId, pending);
      }, wait);
      return;
    }
    const [next] = pending.updates.values();
    if (!next) {
      this.#sessions.delete(threadId);
      return;
    }
    pending.updates.delete(next.of);
    pending.sentAt = performance.now();
    this.#connection.send(toNotification(next));
    this.#send(threadId, pending);
  }

  #stop(): void {
    for (const { timer } of this.#sessions.values()) if (timer) clearTimeout(timer);
    this.#sessions.clear();
  }
}

function toNotification({ of, projectId, agentId, threadId, executionId }: Update): Notification {
  if (of === 'queue') return { type: 'agentMessageQueueUpdated', data: { projectId, agentId, threadId } };
  return {
    type: 'agentExecutionUpdated',
    data: { projectId, agentId, threadId, executionId: executionId ?? '' },
  };
}

/** The `/push` streams of this main. */
export class Notifications {
  readonly #db: Query;
  readonly #listener: SignalListener;
  readonly #streams = new Map<NotificationStream, string>();

  constructor(db: Query, listener: SignalListener) {
    this.#db = db;
    this.#listener = listener;
  }

  /** Serves one connection until it closes: `connected`, when nothing that comes is missed any more, then what changes. */
  async serve(connection: SseConnection, userId: string): Promise<void> {
    const stream = new NotificationStream(connection);
    const subscription = this.#listener.listen(channels.user(userId), (signal) => {
      if (signal.kind === 'update') stream.update(signal);
    });
    this.#streams.set(stream, userId);
    connection.onClose(() => {
      subscription.close();
      this.#streams.delete(stream);
    });
    await Promise.race([subscription.ready, new Promise((resolve) => setTimeout(resolve, SUBSCRIBE_MS).unref())]);
    connection.send({ type: 'connected' });
  }

  /**
   * Signals were lost while Redis was away: announces every session that changed since `since`, and every one that runs, so
   * that clients read again.
   */
  async announceChangesSince(since: Date): Promise<void> {
    const users = [...new Set(this.#streams.values())];
    if (users.length === 0) return;
    for (const { userId, executionId, ...session } of await changedSessions(this.#db, users, since))
      for (const [stream, owner] of this.#streams) {
        if (owner !== userId) continue;
        stream.update({ kind: 'update', of: 'queue', ...session });
        if (executionId !== null) stream.update({ kind: 'update', of: 'execution', ...session, executionId });
      }
  }
}
