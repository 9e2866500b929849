import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { expectProblem } from '../support/problem.js';
import { type Race, ROUNDS, ran, runRaces } from '../support/race.js';
import { startSteeredTurn } from '../support/steered-turn.js';
import { useCluster } from '../support/suite.js';

/**
 * Two changes of one session at once, through different processes (section 6: 'claim, edit, removal, reorder, steer, Stop and
 * completion cannot interleave').
 */
describe('changes against consumption: one side wins, and both are told the truth', function () {
  this.timeout(120_000 + ROUNDS * 5_000);
  const cluster = useCluster({ mains: 2, workers: 1 });
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat();
  });

  function requests(text: string): number {
    return cluster.model.requestsFor(text).length;
  }

  const races: Record<string, () => Promise<Race>> = {
    'a removal against consumption': async () => {
      const text = unique('taken');
      const turn = await startSteeredTurn(chat, cluster.model, { ends: 'turn' });
      const { sessionId, executionId, marker } = turn;
      const { queueId } = await turn.accept(text);
      await turn.queue.steer(queueId, executionId);
      return {
        sessionId,
        left: () => turn.other.remove(queueId),
        right: async () => turn.held.open(),
        outcome: async (answer) => {
          const won = answer.status === 200;
          if (!won) expectProblem(answer, 409, 'item_started');
          const steered = (await turn.stream.all()).filter(({ data }) => data.type === 'message-steered');
          expect(steered).to.have.length(won ? 0 : 1);
          expect(await chat.settled(sessionId)).to.have.length(1);
          expect(await ran(chat, sessionId)).to.deep.equal(won ? [marker] : [marker, text]);
          expect(requests(text)).to.equal(won ? 0 : 1);
          return won ? 'left' : 'right';
        },
      };
    },
    'an edit against consumption': async () => {
      const [old, edited] = [unique('old'), unique('edited')];
      const turn = await startSteeredTurn(chat, cluster.model, { ends: 'turn' });
      const { sessionId, executionId, marker } = turn;
      const { queueId } = await turn.accept(old);
      await turn.queue.steer(queueId, executionId);
      return {
        sessionId,
        left: () => turn.other.edit(queueId, edited),
        right: async () => turn.held.open(),
        outcome: async (answer) => {
          const won = answer.status === 200;
          if (!won) expectProblem(answer, 409, 'item_started');
          await turn.stream.all();
          expect(await chat.settled(sessionId)).to.have.length(1);
          expect(await ran(chat, sessionId)).to.deep.equal([marker, won ? edited : old]);
          expect([requests(old), requests(edited)]).to.deep.equal(won ? [0, 1] : [1, 0]);
          return won ? 'left' : 'right';
        },
      };
    },
    'a reservation given back against consumption': async () => {
      const text = unique('back');
      const turn = await startSteeredTurn(chat, cluster.model, { ends: 'turn' });
      const { sessionId, executionId, marker } = turn;
      const { queueId } = await turn.accept(text);
      await turn.queue.steer(queueId, executionId);
      return {
        sessionId,
        left: () => turn.other.giveBack(queueId),
        right: async () => turn.held.open(),
        outcome: async (answer) => {
          const won = answer.status === 200;
          if (!won) expectProblem(answer, 409, 'item_started');
          expect(await chat.settled(sessionId, won ? 2 : 1)).to.have.length(won ? 2 : 1);
          expect(await ran(chat, sessionId)).to.deep.equal([marker, text]);
          expect(requests(text)).to.equal(1);
          return won ? 'left' : 'right';
        },
      };
    },
  };

  for (const [what, prepare] of Object.entries(races)) {
    it(`${what} (${ROUNDS} rounds)`, () => runRaces(cluster.db, chat, prepare));
  }
});
