import { randomInt } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import type { Chat } from '../support/chat.js';
import { useCluster } from '../support/suite.js';
import { answer } from '../support/tool-server.js';
import { commands, type Known, perform, tally } from './queue-commands.js';
import { EMPTY, MAX_STEPS, type State } from './queue-model.js';
import { RealSession } from './queue-session.js';

const SEEDS = process.env.TURNKEEP_LONG ? 200 : 12;
/** `TURNKEEP_SEED=…` runs one seed again. */
const REPEATED = process.env.TURNKEEP_SEED;

/**
 * Random sends, edits, removals, reorders, steers, Stops and ends of steps, alone and at once, against real mains and workers
 * (contract, section 6, guarantees 1 to 3, 7 and 8). A reference model predicts every answer and all that can be seen.
 */
describe('the queue and its model', function () {
  this.timeout(60_000 + SEEDS * 20_000);
  const cluster = useCluster({ mains: 2, workers: 2 });
  let chat: Chat;
  before(async () => {
    cluster.tools.on('quick', answer({ ok: true }));
    const limits = { maxSteps: MAX_STEPS, maxDurationMs: 600_000, maxToolOutputChars: 100_000 };
    chat = await cluster.newChat({ tools: [cluster.httpTool('quick')], limits });
  });

  it(`agree on ${SEEDS} seeds`, async () => {
    const first = REPEATED === undefined ? randomInt(2 ** 31 - SEEDS) : Number(REPEATED);
    for (let seed = first; seed < first + (REPEATED === undefined ? SEEDS : 1); seed += 1) {
      try {
        await runSeed(seed);
      } catch (error) {
        throw new Error(`the seed is ${seed}; to repeat it: TURNKEEP_SEED=${seed}`, { cause: error });
      }
    }
    if (process.env.TURNKEEP_LONG)
      console.log(
        [...tally]
          .sort()
          .map(([what, times]) => `      ${times} ${what}`)
          .join('\n'),
      );
    // Whatever the seeds, something of each kind must have happened.
    for (const what of ['send 202', 'edit 200', 'remove 200', 'reorder 200', 'steer 200', 'giveBack 200', 'end none'])
      expect(tally.get(what) ?? 0, what).to.be.above(0);
  });

  /** A failure is told as it was seen: to shrink it would take hundreds of runs against real processes. */
  async function runSeed(seed: number): Promise<void> {
    const property = fc.asyncProperty(commands, async (drawn) => {
      const real = new RealSession(cluster, chat);
      const known: Known = { states: [EMPTY] };
      await fc.asyncModelRun(() => ({ model: known, real }), drawn);
      await drain(known, real);
      await checkFates(known.states[0] ?? EMPTY, real);
    });
    await fc.assert(property, { seed, numRuns: 1, endOnFailure: true, unbiased: true });
  }

  /** Lets what is pending run, in the order that was saved. */
  async function drain(known: Known, real: RealSession): Promise<void> {
    while (known.states[0]?.phase === 'asking') await perform(known, real, [{ kind: 'end', by: 'turn' }]);
  }

  /** Each message is exactly one of removed, executed once, steered once, and its stream was told so. */
  async function checkFates({ fates }: State, real: RealSession): Promise<void> {
    if (fates.length === 0) return;
    const { messages } = await chat.transcript(real.sessionId, 1);
    const rows = await chat.executions(real.sessionId);
    for (const [key, fate] of fates.entries()) {
      const places = messages.filter(({ id }) => id === real.accepted[key]?.messageId);
      const execution = rows[Number(/\d+$/.exec(fate)?.[0] ?? -1)];
      expect(
        places.map(({ executionId }) => executionId),
        fate,
      ).to.deep.equal(execution ? [execution.id] : []);
      expect(fate).not.to.equal('pending');
      const types = (await real.streams.get(key)?.all())?.map(({ data }) => data.type);
      if (types === undefined) continue;
      if (fate === 'removed') expect(types).to.deep.equal(['message-queued', 'message-removed']);
      else if (fate.startsWith('steered')) expect(types).to.deep.equal(['message-queued', 'message-steered']);
      else expect([types[1], types.at(-1)]).to.deep.equal(['execution-started', 'done']);
    }
  }
});
