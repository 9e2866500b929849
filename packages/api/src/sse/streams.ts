import { type StreamAccess, stillAllowed } from '@turnkeep/shared/access/stream-access';
import { readMarks } from '@turnkeep/shared/chat/events-from-record';
import type { Database } from '@turnkeep/shared/db/database';
import type { Log } from '@turnkeep/shared/log';
import type { Ctx } from '../http/context.js';
import { SseConnection } from './connection.js';
import type { Follower } from './follower.js';
import type { StreamPlaces } from './stream-places.js';
import type { Waiting } from './waiting.js';

const KEEP_ALIVE_MS = 15_000;
/** How often a main looks in Postgres at what its streams wait for (contract, section 4: within 3 s of the commit), in ms. */
const LOOK_MS = 2_000;

/** `waiting`: nothing of a turn yet. `following`: a turn. `push`: notifications. */
export type StreamPhase = 'waiting' | 'following' | 'push';

/** A place for an SSE stream of a user, taken before anything is committed for it. */
export interface StreamPlace {
  /** Sends the headers; the place is given back when the connection closes. */
  open(ctx: Ctx, access: StreamAccess, phase: StreamPhase): OpenStream;
  /** Gives the place back where no stream came of it. */
  giveUp(): void;
}

export interface OpenStream {
  connection: SseConnection;
  phase: StreamPhase;
  access: StreamAccess;
  follower: Follower | null;
}

/**
 * The SSE streams of this main: their number a user, their keep-alive, and the look in Postgres that makes up for
 * every signal that got lost. One timer each for all of them, one statement each for all of them.
 */
export class Streams {
  readonly #db: Database;
  readonly #waiting: Waiting;
  readonly #places: StreamPlaces;
  readonly #log: Log;
  readonly #open = new Set<OpenStream>();
  #keepAlive: NodeJS.Timeout | null = null;
  #look: NodeJS.Timeout | null = null;
  #looking: Promise<void> | null = null;
  #draining = false;
  #onEmpty: (() => void) | null = null;

  constructor(db: Database, waiting: Waiting, places: StreamPlaces, log: Log) {
    this.#db = db;
    this.#waiting = waiting;
    this.#places = places;
    this.#log = log;
  }

  get isDraining(): boolean {
    return this.#draining;
  }

  start(): void {
    this.#places.start();
    this.#keepAlive = setInterval(() => {
      for (const { connection } of this.#open) connection.keepAlive();
    }, KEEP_ALIVE_MS);
    this.#look = setInterval(() => void this.look(), LOOK_MS);
  }

  /**
   * Takes a place for one more stream of a user.
   * @throws ProblemError `too_many_streams`
   */
  async takePlace(userId: string): Promise<StreamPlace> {
    const giveUp = await this.#places.take(userId);
    return { giveUp, open: (ctx, access, phase) => this.#openStream(ctx, access, phase, giveUp) };
  }

  #openStream(ctx: Ctx, access: StreamAccess, phase: StreamPhase, giveUp: () => void): OpenStream {
    const stream: OpenStream = { connection: new SseConnection(ctx), phase, access, follower: null };
    this.#open.add(stream);
    stream.connection.onClose(() => {
      this.#open.delete(stream);
      giveUp();
      if (this.#open.size === 0) this.#onEmpty?.();
    });
    return stream;
  }

  /** Looks at once, and not beside another look: after a reconnect, and every two seconds. */
  async look(): Promise<void> {
    this.#looking ??= Promise.all([this.#lookAtOutcomes(), this.#lookAtExecutions(), this.#lookAtAccess()])
      .then(() => {})
      .catch((error: unknown) => this.#log.warn({ error }, 'the look at what streams wait for did not reach Postgres'))
      .finally(() => {
        this.#looking = null;
      });
    return this.#looking;
  }

  async #lookAtOutcomes(): Promise<void> {
    await this.#waiting.look();
  }

  async #lookAtExecutions(): Promise<void> {
    const followers = [...this.#open].flatMap(({ follower }) => follower ?? []);
    if (followers.length === 0) return;
    const ids = [...new Set(followers.map((follower) => follower.executionId))];
    const marks = new Map((await readMarks(this.#db, ids)).map((mark) => [mark.executionId, mark]));
    for (const follower of followers) follower.look(marks.get(follower.executionId) ?? null);
  }

  /** Who lost the membership or the token loses the streams within 5 s (contract, section 2). */
  async #lookAtAccess(): Promise<void> {
    const streams = [...this.#open];
    if (streams.length === 0) return;
    const allowed = await stillAllowed(
      this.#db,
      streams.map(({ access }) => access),
    );
    for (const [index, stream] of streams.entries()) if (!allowed[index]) stream.connection.end();
  }

  /**
   * Before the main leaves (contract, section 9.10): streams that wait end cleanly now, those of a turn when it is done, at
   * the latest after `graceMs`. Their clients find their turn on another main.
   */
  async drain(graceMs: number): Promise<void> {
    this.#draining = true;
    for (const { connection, phase } of [...this.#open]) if (phase !== 'following') connection.end();
    const timer = setTimeout(() => this.endAll(), graceMs);
    if (this.#open.size > 0)
      await new Promise<void>((resolve) => {
        this.#onEmpty = resolve;
      });
    clearTimeout(timer);
  }

  /** Ends every stream cleanly. */
  endAll(): void {
    for (const { connection } of [...this.#open]) connection.end();
  }

  async stop(): Promise<void> {
    if (this.#keepAlive) clearInterval(this.#keepAlive);
    if (this.#look) clearInterval(this.#look);
    this.#places.stop();
    await this.#looking;
  }
}
