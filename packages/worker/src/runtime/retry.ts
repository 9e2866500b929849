import { setTimeout as sleep } from 'node:timers/promises';
import { APICallError } from '@ai-sdk/provider';

/** How long to wait between two tries of a request. */
export interface RetryWaits {
  /** Before the second try, where the provider asks for nothing; twice that before the third. Milliseconds. */
  backoffMs: number;
  /** The longest wait that a provider can ask for. Milliseconds. */
  maxMs: number;
}

const MAX_RETRIES = 2;
const DEFAULT_WAITS: RetryWaits = { backoffMs: 1000, maxMs: 20_000 };

/**
 * Tries again, at most twice, what the AI SDK calls retryable: 408, 409, 429, 5xx and connections that failed. Honours
 * `Retry-After` up to `maxMs`. Only for a request that has given nothing yet. Errors: the last try's; `AbortError` where
 * the signal ends the wait.
 */
export async function withRetries<T>(
  attempt: () => Promise<T>,
  signal: AbortSignal,
  waits: RetryWaits = DEFAULT_WAITS,
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (tries > MAX_RETRIES || !APICallError.isInstance(error) || !error.isRetryable) throw error;
      const backoffMs = waits.backoffMs * 2 ** (tries - 1);
      await sleep(Math.min(retryAfterMs(error.responseHeaders ?? {}) ?? backoffMs, waits.maxMs), undefined, { signal });
    }
  }
}

/** What a provider asks for, in milliseconds: OpenAI's own header, or the standard one in seconds or as a date. */
function retryAfterMs(headers: Record<string, string>): number | undefined {
  const precise = Number.parseFloat(headers['retry-after-ms'] ?? '');
  if (precise >= 0) return precise;
  const text = headers['retry-after'] ?? '';
  const seconds = Number.parseFloat(text);
  if (seconds >= 0) return seconds * 1000;
  const untilDate = Date.parse(text) - Date.now();
  return untilDate > 0 ? untilDate : undefined;
}
