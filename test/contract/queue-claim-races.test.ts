import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import type { PointedWorker } from '../support/points.js';
import { expectProblem } from '../support/problem.js';
import { type Race, ROUNDS, ran, runRaces } from '../support/race.js';
import { startSteeredTurn } from '../support/steered-turn.js';
import { useCluster } from '../support/suite.js';

/**
 * Two changes of one session at once, through different processes (section 6: 'claim, edit, removal, reorder, steer, Stop and
 * completion cannot interleave').
 */
describe('changes against the claim: one side wins, and both are told the truth', function () {
  this.timeout(120_000 + ROUNDS * 5_000);
  const cluster = useCluster({ mains: 2, workers: 0 });
  let chat: Chat;
  let worker: PointedWorker;
  before(async () => {
    worker = await cluster.startPointedWorker();
    chat = await cluster.newChat();
  });

  function requests(text: string): number {
    return cluster.model.requestsFor(text).length;
  }

  /** A turn has settled and its worker stands still before it wakes the session, in which these texts are pending. */
  async function beforeTheClaim(...texts: string[]) {
    const turn = await startSteeredTurn(chat, cluster.model, { ends: 'turn' });
    const ids: string[] = [];
    for (const text of texts) ids.push((await turn.accept(text)).queueId);
    const settled = await worker.hold('settled');
    turn.held.open();
    await settled.reached();
    return { ...turn, ids, claim: async () => settled.release() };
  }

  const races: Record<string, () => Promise<Race>> = {
    'an edit against the claim of the same item': async () => {
      const [old, edited] = [unique('old'), unique('edited')];
      const { sessionId, ids, claim, other, marker } = await beforeTheClaim(old);
      return {
        sessionId,
        left: () => other.edit(ids[0] ?? '', edited),
        right: claim,
        outcome: async (answer) => {
          await chat.settled(sessionId, 2);
          const won = answer.status === 200;
          if (!won) expectProblem(answer, 409, 'item_started');
          expect(await ran(chat, sessionId)).to.deep.equal([marker, won ? edited : old]);
          expect([requests(old), requests(edited)]).to.deep.equal(won ? [0, 1] : [1, 0]);
          return won ? 'left' : 'right';
        },
      };
    },
    'a removal against the claim of the same item': async () => {
      const text = unique('removed');
      const { sessionId, ids, claim, other, marker } = await beforeTheClaim(text);
      return {
        sessionId,
        left: () => other.remove(ids[0] ?? ''),
        right: claim,
        outcome: async (answer) => {
          const won = answer.status === 200;
          if (!won) expectProblem(answer, 409, 'item_started');
          await chat.settled(sessionId, won ? 1 : 2);
          // Whatever the claim may still do, it has done when the next turn is through.
          const last = await chat.turn(unique('last'), { sessionId });
          expect(last.status).to.equal('success');
          expect((await ran(chat, sessionId)).slice(0, -1)).to.deep.equal(won ? [marker] : [marker, text]);
          expect(requests(text)).to.equal(won ? 0 : 1);
          return won ? 'left' : 'right';
        },
      };
    },
    'a reorder against the claim of the first item': async () => {
      const [x, y] = [unique('x'), unique('y')];
      const { sessionId, ids, claim, other, marker } = await beforeTheClaim(x, y);
      return {
        sessionId,
        left: () => other.reorder(ids[0] ?? '', ids[1] ?? '', ids),
        right: claim,
        outcome: async (answer) => {
          await chat.settled(sessionId, 3);
          const won = answer.status === 200;
          if (!won) expectProblem(answer, 409, 'item_started');
          expect(await ran(chat, sessionId)).to.deep.equal(won ? [marker, y, x] : [marker, x, y]);
          return won ? 'left' : 'right';
        },
      };
    },
    'a steer against the claim of the same item': async () => {
      const text = unique('steered');
      const { sessionId, ids, claim, other, marker, executionId } = await beforeTheClaim(text);
      return {
        sessionId,
        left: () => other.steer(ids[0] ?? '', executionId),
        right: claim,
        outcome: async (answer) => {
          await chat.settled(sessionId, 2);
          const code = answer.json<{ code: string }>().code;
          expectProblem(answer, 409, code);
          expect(code).to.be.oneOf(['execution_not_steerable', 'item_started']);
          expect(await ran(chat, sessionId)).to.deep.equal([marker, text]);
          expect(requests(text)).to.equal(1);
          return code === 'execution_not_steerable' ? 'left' : 'right';
        },
      };
    },
  };

  for (const [what, prepare] of Object.entries(races)) {
    it(`${what} (${ROUNDS} rounds)`, () => runRaces(cluster.db, chat, prepare));
  }
});
