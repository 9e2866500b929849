import type { Claimed } from '@turnkeep/shared/chat/claim';
import type { Owner } from '@turnkeep/shared/chat/record';

/**
 * Why a turn stops early. `cancelled`: a Stop. `time_limit`: maxDurationMs. `interrupted`: this process shuts down, or
 * admission lost its lock. `failed`: the record could not be kept. `lost`: the execution is no longer ours, so nothing is written any more.
 */
export type StopReason = 'cancelled' | 'time_limit' | 'interrupted' | 'failed' | 'lost';

/** An execution that this worker runs: its cancel handle, and until when it is ours. */
export class RunningTurn {
  readonly claimed: Claimed;
  readonly owner: Owner;
  readonly #controller = new AbortController();
  #reason: StopReason | null = null;
  #leaseEndsAt: number;

  /** @param leaseEndsAt by `performance.now()`, counted from before the claim was sent */
  constructor(claimed: Claimed, workerId: string, leaseEndsAt: number) {
    this.claimed = claimed;
    this.owner = {
      executionId: claimed.executionId,
      executionNumber: claimed.number,
      sessionId: claimed.session.sessionId,
      runId: claimed.runId,
      workerId,
    };
    this.#leaseEndsAt = leaseEndsAt;
  }

  /** Aborts with a `DOMException` named AbortError when the turn is stopped. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get stopReason(): StopReason | null {
    return this.#reason;
  }

  /** Stops the turn: requests to the model and to tools are aborted. The first reason stays, but `lost` overrules. */
  stop(reason: StopReason): void {
    if (this.#reason === null || reason === 'lost') this.#reason = reason;
    if (!this.signal.aborted) this.#controller.abort(new DOMException(`The turn was stopped: ${reason}`, 'AbortError'));
  }

  /** The lease was prolonged; `endsAt` by `performance.now()`. */
  prolong(endsAt: number): void {
    this.#leaseEndsAt = endsAt;
  }

  /** Ms until our lease is over, by this process' monotonic clock; not positive: it is. */
  leaseLeftMs(): number {
    return this.#leaseEndsAt - performance.now();
  }

  /**
   * Asked before every model request, tool call and write: whether the turn may go on (contract, section 9.6). A process
   * that was paused past its lease finds out here, before its timers do.
   * @throws the abort reason
   */
  assertRunning(): void {
    if (this.leaseLeftMs() <= 0) this.stop('lost');
    this.signal.throwIfAborted();
  }
}
