import type { Usage } from '@turnkeep/shared/contract/events';

/** Adds up what the model requests of an execution cost, also of those that run side by side or end early. */
export class UsageMeter {
  readonly #requests: Usage[] = [];
  readonly #onChange: (total: Usage) => void;

  constructor(onChange: (total: Usage) => void) {
    this.#onChange = onChange;
  }

  /** Begins to count one request; each call of the answer replaces what is known of it. */
  request(): (usage: Usage) => void {
    const index = this.#requests.push({ inputTokens: 0, outputTokens: 0 }) - 1;
    return (usage) => {
      this.#requests[index] = usage;
      this.#onChange(this.#total());
    };
  }

  #total(): Usage {
    return this.#requests.reduce(
      (sum, usage) => ({
        inputTokens: sum.inputTokens + usage.inputTokens,
        outputTokens: sum.outputTokens + usage.outputTokens,
      }),
      { inputTokens: 0, outputTokens: 0 },
    );
  }
}
