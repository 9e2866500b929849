import type { AttachmentStore } from '@turnkeep/shared/attachments/store';
import { INTERRUPTED } from '@turnkeep/shared/chat/interrupt';
import type { Answer } from '@turnkeep/shared/chat/resume';
import { type FinalStatus, type Settled, settleExecution, settleOrSteer } from '@turnkeep/shared/chat/settle';
import { type ConsumedSteers, closeSteering, steerBoundary } from '@turnkeep/shared/chat/steers';
import { suspendExecution } from '@turnkeep/shared/chat/suspend';
import type { ExecutionEvent, SettledStatus } from '@turnkeep/shared/contract/events';
import type { ExecutionError } from '@turnkeep/shared/contract/execution';
import { type Database, DatabaseAway } from '@turnkeep/shared/db/database';
import type { Log } from '@turnkeep/shared/log';
import type { EventStream } from '@turnkeep/shared/redis/event-stream';
import type { Signals } from '@turnkeep/shared/redis/signals';
import { advance, type LoopHost, StepLimitReached } from './agent-loop.js';
import { type Delegates, writeCheckpoint } from './checkpoint.js';
import { listServers, openModel, startRun, steeredContext } from './context.js';
import { EventRelay } from './event-relay.js';
import { eventLine, preview } from './event-size.js';
import { type Frame, waitingCalls, waitingDelegates } from './frame.js';
import { Output } from './output.js';
import { Recorder } from './recorder.js';
import type { RunningTurn } from './running-turn.js';
import type { Egress } from './runtime/egress.js';
import { type TurnFailure, toTurnFailure } from './runtime/failure.js';
import type { McpClients } from './runtime/mcp.js';
import type { TurnModel } from './runtime/model.js';
import { INTERNAL, stepLimit, timeLimit } from './turn-errors.js';
import { UsageMeter } from './usage-meter.js';

/** Where a test can hold or kill a turn. */
export type TurnPoint =
  | 'before-model'
  | 'after-model'
  | 'before-tools'
  | 'after-tools'
  | 'suspending'
  | 'boundary'
  | 'steered'
  | 'settling'
  | 'settled';

export interface TurnDeps {
  db: Database;
  events: EventStream;
  signals: Signals;
  egress: Egress;
  mcp: McpClients;
  attachmentStore: AttachmentStore;
  encryptionKey: Buffer;
  log: Log;
  /** Named points at which a test can hold or kill the process; a product build does nothing there. */
  point: (name: TurnPoint) => Promise<void> | void;
}

/** What was committed as the end of an execution. `events` come before `error` and `done`. */
export interface Ended extends Omit<Settled, 'status'> {
  status: SettledStatus;
  events?: ExecutionEvent[];
}

/** How a turn came out of its loop, before it is settled. */
interface End {
  status: FinalStatus;
  error: ExecutionError | null;
}

const RETRY_MS = 200;

/**
 * One execution, from `execution-started` to `done` (contract, sections 4 to 6): a loop over steps, each a model request, its
 * tool calls and the boundary at which steered messages come in. Whatever happens, it ends in one settling transaction, or
 * quietly where the execution is no longer ours.
 */
export class Turn {
  readonly #deps: TurnDeps;
  readonly #turn: RunningTurn;
  readonly #recorder: Recorder;
  readonly #relay: EventRelay;
  readonly #output: Output;
  readonly #meter: UsageMeter;
  /** Model requests of the run so far. */
  #steps = 0;
  #calls = 0;
  #place: number;

  constructor(deps: TurnDeps, turn: RunningTurn) {
    const { sessionId, executionId } = turn.owner;
    this.#deps = deps;
    this.#turn = turn;
    this.#place = turn.claimed.place;
    this.#relay = new EventRelay(deps.events, sessionId, executionId);
    this.#recorder = new Recorder(
      deps.db,
      turn,
      () => this.#changed(),
      (error) => this.#failed(error),
    );
    this.#output = new Output(this.#recorder, this.#relay);
    this.#meter = new UsageMeter((total) => this.#recorder.usage(total));
  }

  /** Sends `execution-started`, and tells the streams that wait for the message. */
  announce(): void {
    const { session, executionId, runId, queueId, message, checkpoint } = this.#turn.claimed;
    const { signals } = this.#deps;
    const { sessionId } = session;
    this.#output.event({ type: 'execution-started', executionId, runId, sessionId, ...(message ? { message } : {}) });
    this.#relay.flush();
    void signals.outcome(sessionId, queueId ?? checkpoint?.checkpointId ?? '', 'started', executionId);
    void signals.executionChanged(session, executionId);
    void signals.queueChanged(session);
  }

  /**
   * Runs the turn and settles it.
   * @returns what was settled; null where the execution was no longer ours
   */
  async run(): Promise<Ended | null> {
    const { maxDurationMs } = this.#turn.claimed.config.limits;
    const timer = setTimeout(() => this.#turn.stop('time_limit'), maxDurationMs);
    try {
      const ended = await this.#loop().catch((error: unknown) => this.#endOf(error));
      const settled = ended === null || 'ready' in ended ? ended : await this.#settle(ended);
      if (settled) await this.#announceEnd(settled);
      return settled;
    } finally {
      clearTimeout(timer);
      this.#recorder.stop();
      this.#relay.drop();
    }
  }

  /** What the turn comes to: something to settle, something that was settled, or null: moved on. */
  async #loop(): Promise<End | Ended | null> {
    this.#turn.assertRunning();
    const begun = await this.#patiently(() => this.#begin());
    if (begun === null) return null;
    const { root, answers, host } = begun;
    let given: ReadonlyMap<string, Answer> | undefined = answers;
    for (;;) {
      if ((await advance(host, root, given)) === 'waiting') return this.#suspend(root, host.delegates);
      given = undefined;
      const ended = await this.#settleOrSteer();
      if (ended === null || 'ready' in ended) return ended;
      await this.#takeIn(root, ended);
    }
  }

  async #begin() {
    const start = await startRun(this.#deps, this.#turn);
    this.#steps = start.steps;
    this.#recorder.steps = start.steps;
    const host = this.#host(start.delegates);
    if (start.isNew) await listServers(host, start.root);
    return { ...start, host };
  }

  #host(delegates: Delegates): LoopHost {
    const { egress, mcp, point, db, encryptionKey } = this.#deps;
    const models = new Map<Frame, Promise<TurnModel>>();
    const { projectId } = this.#turn.claimed.session;
    const open = async ({ config }: Frame): Promise<TurnModel> => {
      const model = await this.#patiently(() => openModel(db, encryptionKey, egress, projectId, config.model));
      if (model === null) throw this.#turn.signal.reason;
      return model;
    };
    const openOnce = (frame: Frame) => {
      const model = models.get(frame) ?? open(frame);
      models.set(frame, model);
      return model;
    };
    return {
      turn: this.#turn,
      output: this.#output,
      egress,
      mcp,
      delegates,
      openModel: openOnce,
      takeStep: () => this.#takeStep(),
      isLastStep: () => this.#steps >= this.#maxSteps,
      nextOrdinal: () => {
        this.#calls += 1;
        return this.#turn.owner.executionNumber * 1_000_000 + this.#calls;
      },
      meter: () => this.#meter.request(),
      stepStarted: () => this.#output.event({ type: 'start-step', step: this.#steps }, (n) => this.#recorder.step(n)),
      stepFinished: (usage) => this.#output.event({ type: 'finish-step', step: this.#steps, usage }),
      recorded: async () => {
        if (!(await this.#recorder.flush())) this.#turn.assertRunning();
      },
      point,
      boundary: (frame) => this.#boundary(frame),
    };
  }

  get #maxSteps(): number {
    return this.#turn.claimed.config.limits.maxSteps;
  }

  async #takeStep(): Promise<void> {
    if (this.#steps >= this.#maxSteps) throw new StepLimitReached();
    this.#steps += 1;
    this.#recorder.steps = this.#steps;
    if (this.#steps === this.#maxSteps && this.#steps > 1) {
      await this.#patiently(() => closeSteering(this.#deps.db, this.#turn.owner));
      void this.#deps.signals.queueChanged(this.#turn.claimed.session);
    }
  }

  /** The internal boundary between two steps: all that came before is with the recorder, then reserved messages come in. */
  async #boundary(root: Frame): Promise<void> {
    this.#output.flush();
    await this.#deps.point('boundary');
    if (this.#steps >= this.#maxSteps) return;
    const batch = await this.#recorder.take();
    const consumed = await this.#patiently(() =>
      steerBoundary(this.#deps.db, this.#turn.owner, batch, { place: this.#place }),
    );
    if (consumed === 'moved on' || consumed === 'cancelled') {
      this.#turn.stop(consumed === 'moved on' ? 'lost' : 'cancelled');
      this.#turn.signal.throwIfAborted();
    } else if (consumed === null) {
      this.#recorder.committed(batch.recordedN);
    } else if (consumed) {
      await this.#takeIn(root, consumed);
    }
  }

  /** Messages were steered in: they are announced, and a new segment of the assistant begins. */
  async #takeIn(root: Frame, { steered, segmentId, place }: ConsumedSteers): Promise<void> {
    const { session, executionId } = this.#turn.claimed;
    this.#recorder.committed(steered.at(-1)?.n ?? this.#output.lastN);
    this.#recorder.segment = segmentId;
    this.#place = place;
    await this.#deps.point('steered');
    this.#output.committed(
      steered.map(({ queueId, message, n }) => ({
        n,
        event: { type: 'message-steered', queueId, executionId, message },
      })),
    );
    for (const { queueId } of steered)
      void this.#deps.signals.outcome(session.sessionId, queueId, 'steered', executionId);
    this.#changed();
    void this.#deps.signals.queueChanged(session);
    const messages = steered.map(({ message }) => message);
    root.messages.push(...(await steeredContext(this.#deps, this.#turn, messages)));
  }

  async #settleOrSteer(): Promise<Settled | ConsumedSteers | null> {
    this.#output.flush();
    await this.#deps.point('boundary');
    const last = this.#steps >= this.#maxSteps;
    return this.#commit({ status: 'success', error: null }, !last);
  }

  /** The calls that wait are the last events of the execution but for `done`; all of it is one transaction. */
  async #suspend(root: Frame, delegates: Delegates): Promise<Ended | End | null> {
    this.#output.flush();
    const batch = await this.#recorder.take();
    const waiting = waitingCalls(root);
    const calls = waiting.map((call, index) => ({
      callId: call.callId,
      kind: call.wait,
      n: this.#output.lastN + 1 + index,
    }));
    const finalN = this.#output.lastN + calls.length + 1;
    const state = writeCheckpoint({ root, delegates, steps: this.#steps });
    await this.#deps.point('suspending');
    const suspended = await this.#patiently(() =>
      suspendExecution(this.#deps.db, this.#turn.owner, {
        state,
        calls,
        delegates: waitingDelegates(root),
        finalN,
        batch,
      }),
    );
    if (suspended === 'marked') return { status: 'cancelled', error: null };
    if (suspended === null) return null;
    this.#recorder.committed(batch.recordedN);
    const { runId } = this.#turn.owner;
    const events = waiting.map((call): ExecutionEvent => suspendedEvent(runId, call));
    return { ready: false, status: 'suspended', error: null, usage: suspended.usage, finalN, events };
  }

  async #settle(end: End): Promise<Ended | null> {
    this.#output.close();
    const settled = await this.#commit(end, false).catch((error: unknown) => {
      this.#failed(error);
      this.#recorder.discard();
      return this.#commit({ status: 'error', error: INTERNAL }, false);
    });
    return settled === null || 'ready' in settled ? settled : null;
  }

  /** Postgres refused what was to be recorded. The turn ends; what it had recorded before is kept. */
  #failed(error: unknown): void {
    const { sessionId, executionId } = this.#turn.owner;
    this.#deps.log.error({ sessionId, executionId, error }, 'the record of a turn could not be kept');
    this.#turn.stop('failed');
  }

  /** The settling transaction, again and again while Postgres is away and the lease lasts. */
  async #commit(end: End, maySteer: boolean): Promise<Settled | ConsumedSteers | null> {
    const batch = await this.#recorder.take();
    await this.#deps.point('settling');
    const { db } = this.#deps;
    const settlement = { ...end, finalN: this.#finalN(end.error), batch };
    return this.#patiently(() =>
      maySteer
        ? settleOrSteer(db, this.#turn.owner, settlement, { place: this.#place })
        : settleExecution(db, this.#turn.owner, settlement),
    );
  }

  #finalN(error: ExecutionError | null): number {
    return this.#output.lastN + (error === null ? 1 : 2);
  }

  /** Repeats a transaction for as long as Postgres is away and the lease lasts; null: it was in vain. */
  async #patiently<T>(attempt: () => Promise<T>): Promise<T | null> {
    for (;;) {
      if (this.#turn.leaseLeftMs() <= 0) this.#turn.stop('lost');
      if (this.#turn.stopReason === 'lost') return null;
      try {
        return await attempt();
      } catch (error) {
        if (!(error instanceof DatabaseAway)) throw error;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  /** What a throw of the loop means for the turn. */
  #endOf(error: unknown): End | null {
    switch (this.#turn.stopReason) {
      case 'lost':
        return null;
      case 'cancelled':
        return { status: 'cancelled', error: null };
      case 'interrupted':
        return { status: 'interrupted', error: INTERRUPTED };
      case 'failed':
        return { status: 'error', error: INTERNAL };
      case 'time_limit':
        return { status: 'error', error: timeLimit(this.#turn.claimed.config.limits.maxDurationMs) };
      case null: {
        // Delegates that run beside the one that failed.
        this.#turn.stop('failed');
        if (error instanceof StepLimitReached) return { status: 'error', error: stepLimit(this.#steps) };
        const failure = toTurnFailure(error);
        this.#logFailure(failure, error);
        return { status: 'error', error: { code: failure.code, message: failure.message } };
      }
    }
  }

  #logFailure(failure: TurnFailure, error: unknown): void {
    const { sessionId, executionId } = this.#turn.owner;
    const fields = { sessionId, executionId, code: failure.code };
    if (failure.code === 'internal') this.#deps.log.error({ ...fields, error }, 'a turn failed');
    else this.#deps.log.info(fields, 'a turn failed');
  }

  async #announceEnd(settled: Ended): Promise<void> {
    const { session, executionId } = this.#turn.claimed;
    await this.#deps.point('settled');
    const error: ExecutionEvent[] = settled.error ? [{ type: 'error', ...settled.error }] : [];
    const done: ExecutionEvent = {
      type: 'done',
      sessionId: session.sessionId,
      executionId,
      status: settled.status,
      usage: settled.usage,
    };
    await this.#relay.seal(settled.finalN, [...(settled.events ?? []), ...error, done].map(eventLine));
    void this.#deps.signals.executionChanged(session, executionId);
  }

  #changed(): void {
    void this.#deps.signals.executionChanged(this.#turn.claimed.session, this.#turn.owner.executionId);
  }
}

function suspendedEvent(runId: string, { callId, toolName, input, wait }: ReturnType<typeof waitingCalls>[number]) {
  const cut = preview(JSON.stringify(input));
  const call = { type: 'tool-call-suspended' as const, toolCallId: callId, toolName, runId, kind: wait };
  return { ...call, input: cut ?? input, ...(cut === null ? {} : { truncated: true }) };
}
