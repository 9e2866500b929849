import { INTERRUPTED } from '@turnkeep/shared/chat/interrupt';
import { type FinalStatus, type Settled, settleExecution, settleOrSteer } from '@turnkeep/shared/chat/settle';
import { type ConsumedSteers, closeSteering, steerBoundary } from '@turnkeep/shared/chat/steers';
import type { ExecutionEvent, Usage } from '@turnkeep/shared/contract/events';
import type { ExecutionError } from '@turnkeep/shared/contract/execution';
import { newId } from '@turnkeep/shared/contract/ids';
import { type Database, DatabaseAway } from '@turnkeep/shared/db/database';
import type { Log } from '@turnkeep/shared/log';
import type { EventStream } from '@turnkeep/shared/redis/event-stream';
import type { Signals } from '@turnkeep/shared/redis/signals';
import type { ModelMessage } from 'ai';
import { loadContext, openModel, steeredContext } from './context.js';
import { EventRelay } from './event-relay.js';
import { eventLine } from './event-size.js';
import { Output } from './output.js';
import { Recorder } from './recorder.js';
import type { RunningTurn } from './running-turn.js';
import type { Egress } from './runtime/egress.js';
import { type TurnFailure, toTurnFailure } from './runtime/failure.js';
import { providerKey, type TurnModel } from './runtime/model.js';
import { runStep, type StepOutcome } from './runtime/step.js';
import { toolMessage } from './runtime/tool-output.js';
import { offeredTools, runCalls, type StepCall } from './tool-batch.js';

/** Where a test can hold or kill a turn. */
export type TurnPoint =
  | 'before-model'
  | 'after-model'
  | 'before-tools'
  | 'after-tools'
  | 'boundary'
  | 'steered'
  | 'settling'
  | 'settled';

export interface TurnDeps {
  db: Database;
  events: EventStream;
  signals: Signals;
  egress: Egress;
  encryptionKey: Buffer;
  log: Log;
  /** Named points at which a test can hold or kill the process; a product build does nothing there. */
  point: (name: TurnPoint) => Promise<void> | void;
}

/** How a turn came out of its loop, before it is settled. */
interface End {
  status: FinalStatus;
  error: ExecutionError | null;
}

const NOT_RUN = 'Not run: the turn reached its step limit.';
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
  #messages: ModelMessage[] = [];
  #steps = 0;
  #calls = 0;
  #place: number;
  #usage: Usage | null = null;

  constructor(deps: TurnDeps, turn: RunningTurn) {
    const { sessionId, executionId } = turn.owner;
    this.#deps = deps;
    this.#turn = turn;
    this.#place = turn.claimed.place;
    this.#relay = new EventRelay(deps.events, sessionId, executionId);
    this.#recorder = new Recorder(
      deps.db,
      turn,
      0,
      () => this.#changed(),
      (error) => this.#failed(error),
    );
    this.#output = new Output(this.#recorder, this.#relay);
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
  async run(): Promise<Settled | null> {
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

  /** The loop over steps. Ends with what is to be settled, with what was settled, or with null: moved on. */
  async #loop(): Promise<End | Settled | null> {
    this.#turn.assertRunning();
    const { config, session } = this.#turn.claimed;
    const { db, encryptionKey, egress } = this.#deps;
    const loaded = await this.#patiently(() =>
      Promise.all([openModel(db, encryptionKey, egress, session.projectId, config.model), loadContext(db, this.#turn)]),
    );
    if (loaded === null) return null;
    const [model, messages] = loaded;
    this.#messages = messages;
    for (;;) {
      const calls = await this.#step(model);
      if (calls.length > 0) {
        if (this.#steps >= config.limits.maxSteps) return this.#stepLimit(calls);
        await this.#runBatch(calls);
        await this.#boundary();
        continue;
      }
      const settled = await this.#settleOrSteer();
      if (settled === null || 'ready' in settled) return settled;
      await this.#takeIn(settled);
    }
  }

  /** One model request. Its calls are on the timeline when it resolves, and `finish-step` is still to come. */
  async #step(model: TurnModel): Promise<StepCall[]> {
    const { config } = this.#turn.claimed;
    this.#steps += 1;
    if (this.#steps === config.limits.maxSteps && this.#steps > 1) {
      await this.#patiently(() => closeSteering(this.#deps.db, this.#turn.owner));
      void this.#deps.signals.queueChanged(this.#turn.claimed.session);
    }
    this.#turn.assertRunning();
    await this.#deps.point('before-model');
    this.#output.startStep(this.#steps);
    const calls: StepCall[] = [];
    const before = this.#usage;
    const outcome = await runStep({
      model,
      instructions: config.instructions,
      messages: this.#messages,
      tools: offeredTools(config),
      abortSignal: this.#turn.signal,
      newCallId: () => `call_${newId()}`,
      onPart: async (part) => {
        this.#output.part(part);
        if (part.type === 'tool-call') calls.push(part);
        await this.#recorder.room();
      },
      onUsage: (usage) => this.#spent(before, usage),
    });
    this.#spent(before, outcome.usage);
    await this.#deps.point('after-model');
    this.#record(calls, outcome);
    if (calls.length === 0) this.#finishStep(outcome.usage);
    this.#messages.push(...outcome.messages);
    this.#lastOutcome = outcome;
    return calls;
  }

  #lastOutcome: StepOutcome | null = null;

  #record(calls: StepCall[], { providerCallIds }: StepOutcome): void {
    const key = providerKey(this.#turn.claimed.config.model);
    for (const call of calls) {
      this.#calls += 1;
      const ordinal = this.#turn.owner.executionNumber * 1_000_000 + this.#calls;
      this.#output.call(call, ordinal, { callId: providerCallIds[call.callId] ?? null, key });
    }
  }

  #finishStep(usage: Usage): void {
    this.#output.event({ type: 'finish-step', step: this.#steps, usage });
  }

  /** Runs a step's calls. They are on record before the first of them runs. */
  async #runBatch(calls: StepCall[]): Promise<void> {
    if (!(await this.#recorder.flush())) this.#turn.assertRunning();
    await this.#deps.point('before-tools');
    const results = await runCalls({ turn: this.#turn, output: this.#output, egress: this.#deps.egress }, calls);
    await this.#deps.point('after-tools');
    const { providerCallIds, usage } = this.#lastOutcome ?? { providerCallIds: {}, usage: NO_USAGE };
    this.#finishStep(usage);
    const { maxToolOutputChars } = this.#turn.claimed.config.limits;
    this.#messages.push(toolMessage(results, providerCallIds, maxToolOutputChars));
  }

  #stepLimit(calls: StepCall[]): End {
    for (const call of calls) this.#output.result(call, NOT_RUN, true);
    this.#finishStep(this.#lastOutcome?.usage ?? NO_USAGE);
    const message = `The turn reached its limit of ${this.#steps} model requests. Send a message to go on.`;
    return { status: 'error', error: { code: 'step_limit', message } };
  }

  /** The internal boundary between two steps: all that came before is with the recorder, then reserved messages come in. */
  async #boundary(): Promise<void> {
    this.#output.flush();
    await this.#deps.point('boundary');
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
      await this.#takeIn(consumed);
    }
  }

  /** Messages were steered in: they are announced, and a new segment of the assistant begins. */
  async #takeIn({ steered, segmentId, place }: ConsumedSteers): Promise<void> {
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
    this.#messages.push(...(await steeredContext(this.#deps.db, this.#turn, messages)));
  }

  async #settleOrSteer(): Promise<Settled | ConsumedSteers | null> {
    this.#output.flush();
    await this.#deps.point('boundary');
    const last = this.#steps >= this.#turn.claimed.config.limits.maxSteps;
    return this.#commit({ status: 'success', error: null }, !last);
  }

  async #settle(end: End): Promise<Settled | null> {
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

  async #announceEnd(settled: Settled): Promise<void> {
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
    await this.#relay.seal(settled.finalN, [...error, done].map(eventLine));
    void this.#deps.signals.executionChanged(session, executionId);
  }

  #spent(before: Usage | null, usage: Usage): void {
    this.#usage = {
      inputTokens: (before?.inputTokens ?? 0) + usage.inputTokens,
      outputTokens: (before?.outputTokens ?? 0) + usage.outputTokens,
    };
    this.#recorder.usage(this.#usage);
  }

  #changed(): void {
    void this.#deps.signals.executionChanged(this.#turn.claimed.session, this.#turn.owner.executionId);
  }
}

const INTERNAL: ExecutionError = {
  code: 'internal',
  message: 'Something went wrong on our side. Send the message again.',
};
const NO_USAGE: Usage = { inputTokens: 0, outputTokens: 0 };

function timeLimit(ms: number): ExecutionError {
  return { code: 'time_limit', message: `The turn took longer than the ${ms / 1000} s that it may take.` };
}
