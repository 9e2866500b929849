import type { AttachmentStore } from '@turnkeep/shared/attachments/store';
import type { Config } from '@turnkeep/shared/config';
import type { Database } from '@turnkeep/shared/db/database';
import type { Log } from '@turnkeep/shared/log';
import type { ChatLock } from '@turnkeep/shared/redis/chat-lock';
import type { EventStream } from '@turnkeep/shared/redis/event-stream';
import type { Signals } from '@turnkeep/shared/redis/signals';
import type { TurnQueue } from '@turnkeep/shared/redis/turn-queue';
import type { Redis } from 'ioredis';
import type { Metrics } from './ops/metrics.js';
import type { Notifications } from './sse/notifications.js';
import type { StreamHub } from './sse/stream-hub.js';
import type { Streams } from './sse/streams.js';
import type { Waiting } from './sse/waiting.js';

/** What `main.ts` composes and everything below is given. */
export interface Deps {
  config: Config;
  log: Log;
  db: Database;
  /** A command connection: never waits for a Redis that is away. */
  redis: Redis;
  signals: Signals;
  turnQueue: TurnQueue;
  metrics: Metrics;
  /** True from the first SIGTERM on. */
  isDraining(): boolean;
}

/** What the routes of chats need besides. */
export interface ChatDeps extends Deps {
  chatLock: ChatLock;
  events: EventStream;
  hub: StreamHub;
  waiting: Waiting;
  streams: Streams;
  notifications: Notifications;
  attachmentStore: AttachmentStore;
}
