import { APICallError } from '@ai-sdk/provider';
import { expect } from 'chai';
import { withRetries } from '../../src/runtime/retry.js';

describe('trying a request again', () => {
  const never = new AbortController().signal;
  const fault = (isRetryable: boolean, responseHeaders: Record<string, string> = {}) =>
    new APICallError({ message: 'no', url: 'http://model', requestBodyValues: {}, isRetryable, responseHeaders });
  /** How long the one wait took, in milliseconds, for a request that works the second time. */
  const waited = async (headers: Record<string, string>, waits = { backoffMs: 1, maxMs: 5000 }) => {
    const start = performance.now();
    let tries = 0;
    await withRetries(() => (++tries === 1 ? Promise.reject(fault(true, headers)) : Promise.resolve()), never, waits);
    return performance.now() - start;
  };

  it('gives up after the third try, with its error', async () => {
    const faults = [fault(true), fault(true), fault(true)];
    let tries = 0;
    const last = await withRetries(() => Promise.reject(faults[tries++]), never, { backoffMs: 1, maxMs: 1 }).catch(
      (error: unknown) => error,
    );
    expect(last).to.equal(faults[2]);
    expect(tries).to.equal(3);
  });

  it('does not happen for what another try cannot mend', async () => {
    for (const error of [fault(false), new Error('x')]) {
      let tries = 0;
      const attempt = () => {
        tries += 1;
        return Promise.reject(error);
      };
      const thrown = await withRetries(attempt, never).catch((caught: unknown) => caught);
      expect(thrown).to.equal(error);
      expect(tries).to.equal(1);
    }
  });

  it('waits as long as the provider asks, in either header and either form', async () => {
    expect(await waited({ 'retry-after-ms': '120' })).to.be.within(115, 900);
    expect(await waited({ 'retry-after': '0.12' })).to.be.within(115, 900);
    expect(await waited({ 'retry-after-ms': '120', 'retry-after': '3' })).to.be.within(115, 900);
    const inTwoSeconds = new Date(Date.now() + 2000).toUTCString();
    expect(await waited({ 'retry-after': inTwoSeconds })).to.be.within(800, 2900);
  });

  it('waits no longer than the bound', async () => {
    expect(await waited({ 'retry-after': '60' }, { backoffMs: 1, maxMs: 50 })).to.be.within(45, 900);
  });

  it('backs off where the provider asks for nothing, for nonsense, or for a time that has passed', async () => {
    for (const headers of [{}, { 'retry-after': 'soon' }, { 'retry-after': new Date(0).toUTCString() }]) {
      expect(await waited(headers, { backoffMs: 100, maxMs: 5000 }), JSON.stringify(headers)).to.be.within(95, 900);
    }
  });

  it('ends its wait with the signal', async () => {
    const controller = new AbortController();
    const running = withRetries(() => Promise.reject(fault(true)), controller.signal, {
      backoffMs: 60_000,
      maxMs: 60_000,
    });
    setImmediate(() => controller.abort());
    expect(await running.catch((error: Error) => error.name)).to.equal('AbortError');
  });
});
