import type { Batch, Entry, NewToolCall, OpenBlock, ToolCallEnd } from '@turnkeep/shared/chat/record';
import { recordBatch } from '@turnkeep/shared/chat/record';
import type { Usage } from '@turnkeep/shared/contract/events';
import { type Database, DatabaseAway } from '@turnkeep/shared/db/database';
import type { RunningTurn } from './running-turn.js';

/** How long output waits before it is written, in ms: with the write itself well under the 500 ms of section 5. */
const FLUSH_MS = 250;
/** How soon a flush that Postgres did not take is tried again, in ms. */
const RETRY_MS = 200;
/** Characters that may wait for Postgres before the turn waits as well. */
const WAITING_CHARS = 8 * 1024 * 1024;

/**
 * Writes what an execution says to Postgres: in batches, append-only, fenced. Handing something over never waits for
 * Postgres; while Postgres is away it keeps what it has, for as long as the lease lasts.
 */
export class Recorder {
  readonly #db: Database;
  readonly #turn: RunningTurn;
  readonly #onFlushed: () => void;
  readonly #onFailed: (error: unknown) => void;
  #segmentId: string;
  #entries: Entry[] = [];
  #newCalls = new Map<string, NewToolCall>();
  #endedCalls = new Map<string, ToolCallEnd>();
  #open = new Map<string, OpenBlock>();
  #recordedN = 1;
  #chars = 0;
  #steps = 0;
  #usage: Usage | null = null;
  #timer: NodeJS.Timeout | null = null;
  /** A batch that was sent and not confirmed. It is sent again as it was: writing it twice is the same as once. */
  #sent: Batch | null = null;
  #flushing: Promise<boolean> | null = null;

  /**
   * @param onFlushed told after each flush that made the transcript grow
   * @param onFailed told when Postgres refused what was to be written
   */
  constructor(db: Database, turn: RunningTurn, onFlushed: () => void, onFailed: (error: unknown) => void) {
    this.#onFailed = onFailed;
    this.#db = db;
    this.#turn = turn;
    this.#onFlushed = onFlushed;
    this.#segmentId = turn.claimed.segmentId;
  }

  /** The assistant's segment that output goes to from now on. */
  set segment(id: string) {
    this.#segmentId = id;
  }

  get segment(): string {
    return this.#segmentId;
  }

  /** Takes a piece of text or reasoning whose first event has number `n`. Pieces of one block are joined until the flush. */
  text(kind: 'text' | 'reasoning', block: string, text: string, n: number): void {
    const last = this.#entries.at(-1);
    if (last && last.kind === kind && last.block === block && last.messageId === this.#segmentId) last.text += text;
    else this.#entry(n, { kind, block, text });
    this.#covers(n, text.length);
  }

  /** Takes what is kept of a delegate's text or reasoning; `cut`: and some of it is not. */
  childText(kind: 'child-text' | 'child-reasoning', toolCallId: string, text: string, cut: boolean, n: number): void {
    const last = this.#entries.at(-1);
    const joins = last?.kind === kind && last.toolCallId === toolCallId && last.block === null;
    if (last && joins) {
      last.text += text;
      if (cut) last.block = 'cut';
    } else this.#entry(n, { kind, toolCallId, text, block: cut ? 'cut' : null });
    this.#covers(n, text.length);
  }

  /** Model requests of the run so far, delegates' included. */
  set steps(steps: number) {
    this.#steps = steps;
  }

  step(n: number): void {
    this.#entry(n, { kind: 'step' });
    this.#covers(n, 0);
  }

  /** Takes a complete call of the agent itself, or of a delegate (`parentId`), which has no place of its own in the timeline. */
  call(call: NewToolCall, n: number): void {
    this.#newCalls.set(call.id, call);
    if (call.parentId === null) this.#entry(n, { kind: 'tool-call', toolCallId: call.id });
    this.#covers(n, call.inputJson.length);
  }

  callEnded(end: ToolCallEnd, n: number): void {
    const fresh = this.#newCalls.get(end.id);
    if (fresh) Object.assign(fresh, end);
    else this.#endedCalls.set(end.id, end);
    this.#covers(n, end.outputJson?.length ?? 0);
  }

  /** A block is under way from event `n` on, until `closed`. */
  opened(key: string, block: OpenBlock, n: number): void {
    this.#open.set(key, block);
    this.#covers(n, 0);
  }

  closed(key: string, n: number): void {
    this.#open.delete(key);
    this.#covers(n, 0);
  }

  usage(usage: Usage): void {
    this.#usage = usage;
  }

  /** An event that the record needs nothing of, but covers. */
  passed(n: number): void {
    this.#covers(n, 0);
  }

  /** Writes all that was handed over before; false where the execution is no longer ours. Waits while Postgres is away. */
  async flush(): Promise<boolean> {
    while (this.#flushing) if (!(await this.#flushing)) return false;
    this.#flushing = this.#write();
    try {
      return await this.#flushing;
    } finally {
      this.#flushing = null;
    }
  }

  /**
   * What is not written yet, for a transaction that writes it with something else. Nothing is flushed meanwhile; after the
   * commit call `committed`.
   */
  async take(): Promise<Batch> {
    while (this.#flushing) await this.#flushing;
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    // A batch whose fate is unknown goes first, alone.
    if (this.#sent) await this.flush();
    return this.#batch();
  }

  /** The batch of `take` was committed, with the record now covering event `recordedN`. */
  committed(recordedN: number): void {
    this.#clear();
    this.#recordedN = recordedN;
  }

  /** Gives up what Postgres refuses to take, so that the execution can be settled without it. */
  discard(): void {
    this.#sent = null;
    this.#usage = null;
    this.#open.clear();
    this.#clear();
  }

  /** Resolves when there is room for more: at once, but where Postgres has been away for long. */
  async room(): Promise<void> {
    if (this.#chars > WAITING_CHARS) await this.flush();
  }

  stop(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #entry(n: number, entry: Partial<Entry> & Pick<Entry, 'kind'>): void {
    this.#entries.push({ messageId: this.#segmentId, n, block: null, toolCallId: null, text: null, ...entry });
  }

  #covers(n: number, chars: number): void {
    this.#recordedN = Math.max(this.#recordedN, n);
    this.#chars += chars;
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.flush().catch(this.#onFailed);
    }, FLUSH_MS);
  }

  #batch(): Batch {
    return {
      entries: this.#entries,
      newCalls: [...this.#newCalls.values()],
      endedCalls: [...this.#endedCalls.values()],
      recordedN: this.#recordedN,
      openBlocks: [...this.#open.values()],
      steps: this.#steps,
      usage: this.#usage,
    };
  }

  #clear(): void {
    this.#entries = [];
    this.#newCalls = new Map();
    this.#endedCalls = new Map();
    this.#chars = 0;
  }

  async #write(): Promise<boolean> {
    for (;;) {
      if (!this.#sent) {
        this.#sent = this.#batch();
        this.#clear();
      }
      const owned = await this.#send(this.#sent);
      if (owned === 'away') continue;
      if (!owned) return false;
      const grew = this.#sent.entries.length > 0 || this.#sent.endedCalls.length > 0;
      this.#sent = null;
      if (grew) this.#onFlushed();
      if (this.#entries.length === 0 && this.#newCalls.size === 0 && this.#endedCalls.size === 0) return true;
    }
  }

  async #send(batch: Batch): Promise<boolean | 'away'> {
    try {
      const owned = this.#turn.leaseLeftMs() > 0 && (await recordBatch(this.#db, this.#turn.owner, batch));
      if (!owned) this.#turn.stop('lost');
      return owned;
    } catch (error) {
      if (!(error instanceof DatabaseAway)) throw error;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      return 'away';
    }
  }
}
