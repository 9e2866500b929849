import { expect } from 'chai';
import type { Chat, Queue } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { gate } from '../support/gate.js';
import type { HttpResponse } from '../support/http.js';
import { say } from '../support/model-script.js';
import type { PointedWorker } from '../support/points.js';
import { expectProblem } from '../support/problem.js';
import { QueueClient } from '../support/queue.js';
import { holdRow } from '../support/row-lock.js';
import { startSteeredTurn } from '../support/steered-turn.js';
import { useCluster } from '../support/suite.js';

const ROUNDS = process.env.TURNKEEP_LONG ? 200 : 3;
/** Who comes first at the session lock; `either`: both start at once. */
const ORDERS = ['left', 'right', 'either'] as const;
type Order = (typeof ORDERS)[number];

/** One race, set up and ready to start. `left` is a request, `right` whatever it runs against. */
interface Race {
  sessionId: string;
  left: () => Promise<HttpResponse>;
  right: () => Promise<unknown>;
  /** Checks that what `left` was told is the truth. Answers who won. */
  outcome: (answer: HttpResponse) => Promise<'left' | 'right'>;
}

/**
 * Two changes of one session at once, through different processes (section 6: 'claim, edit, removal, reorder, steer, Stop and
 * completion cannot interleave'). The order is forced by the session's row: both sides wait for it in the order of coming.
 */
describe('races of the queue: one side wins, and both are told the truth', function () {
  this.timeout(120_000 + ROUNDS * 5_000);
  const cluster = useCluster({ mains: 2, workers: 0 });
  let chat: Chat;
  let worker: PointedWorker;
  before(async () => {
    worker = await cluster.startPointedWorker();
    chat = await cluster.newChat();
  });

  async function run(race: Race, order: Order): Promise<void> {
    const answer = await (order === 'either' ? together(race) : oneByOne(race, order));
    const winner = await race.outcome(answer);
    if (order !== 'either') expect(winner, `${order} was first at the lock; ${answer.text}`).to.equal(order);
    expect(await new QueueClient(chat, race.sessionId).ids(), 'nothing is left behind').to.deep.equal([]);
  }

  async function together({ left, right }: Race): Promise<HttpResponse> {
    const [answer] = await Promise.all([left(), right()]);
    return answer;
  }

  async function oneByOne({ sessionId, left, right }: Race, first: 'left' | 'right'): Promise<HttpResponse> {
    const lock = await holdRow(cluster.db, 'sessions', sessionId);
    const begun: Promise<unknown>[] = [];
    for (const side of first === 'left' ? [left, right] : [right, left]) {
      begun.push(side());
      await lock.awaited(begun.length);
    }
    await lock.release();
    const answers = await Promise.all(begun);
    return answers[first === 'left' ? 0 : 1] as HttpResponse;
  }

  /** The texts that the user's messages in the transcript have, in order. */
  async function ran(sessionId: string): Promise<unknown[]> {
    const { messages } = await chat.transcript(sessionId, 1);
    return messages.filter(({ role }) => role === 'user').map(({ content }) => content[0]?.text);
  }

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
          expect(await ran(sessionId)).to.deep.equal([marker, won ? edited : old]);
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
          expect((await ran(sessionId)).slice(0, -1)).to.deep.equal(won ? [marker] : [marker, text]);
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
          expect(await ran(sessionId)).to.deep.equal(won ? [marker, y, x] : [marker, x, y]);
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
          expect(await ran(sessionId)).to.deep.equal([marker, text]);
          expect(requests(text)).to.equal(1);
          return code === 'execution_not_steerable' ? 'left' : 'right';
        },
      };
    },
    'a steer against Stop': async () => {
      const text = unique('kept');
      const turn = await startSteeredTurn(chat, cluster.model, { ends: 'turn' });
      const { sessionId, executionId, marker } = turn;
      const { queueId } = await turn.accept(text);
      return {
        sessionId,
        left: () => turn.other.steer(queueId, executionId),
        right: async () => expect(await chat.stop(sessionId, executionId)).to.deep.equal({ cancelRequested: true }),
        outcome: async (answer) => {
          const rows = await chat.settled(sessionId, 2);
          expect(rows.map((row) => row.status)).to.deep.equal(['cancelled', 'success']);
          const won = answer.status === 200;
          if (!won) expectProblem(answer, 409, 'execution_not_steerable');
          expect(await ran(sessionId)).to.deep.equal([marker, text]);
          expect(requests(text)).to.equal(1);
          return won ? 'left' : 'right';
        },
      };
    },
    'a steer against completion': async () => {
      const text = unique('late');
      const turn = await startSteeredTurn(chat, cluster.model, { ends: 'turn' });
      const { sessionId, executionId, marker } = turn;
      const { queueId } = await turn.accept(text);
      return {
        sessionId,
        left: () => turn.other.steer(queueId, executionId),
        right: async () => turn.held.open(),
        outcome: async (answer) => {
          const won = answer.status === 200;
          if (!won) expectProblem(answer, 409, 'execution_not_steerable');
          const rows = await chat.settled(sessionId, won ? 1 : 2);
          expect(rows).to.have.length(won ? 1 : 2);
          const steered = (await turn.stream.all()).filter(({ data }) => data.type === 'message-steered');
          expect(steered).to.have.length(won ? 1 : 0);
          expect(await ran(sessionId)).to.deep.equal([marker, text]);
          expect(requests(text)).to.equal(1);
          return won ? 'left' : 'right';
        },
      };
    },
    'two reorders': async () => {
      const turn = await startSteeredTurn(chat, cluster.model, { ends: 'turn' });
      const { sessionId, marker } = turn;
      const texts = [unique('a'), unique('b'), unique('c')];
      const ids: string[] = [];
      for (const text of texts) ids.push((await turn.accept(text)).queueId);
      const [a = '', , c = ''] = ids;
      let second: HttpResponse | undefined;
      return {
        sessionId,
        left: () => turn.other.reorder(a, c, ids),
        right: async () => {
          second = await turn.queue.reorder(c, a, ids);
        },
        outcome: async (first) => {
          const won = first.status === 200;
          const [winner, loser] = won ? [first, second] : [second, first];
          expect(winner?.status).to.equal(200);
          expectProblem(loser as HttpResponse, 409, 'queue_changed');
          const order = won ? [1, 2, 0] : [2, 0, 1];
          expect((winner as HttpResponse).json<Queue>().items.map(({ message }) => message)).to.deep.equal(
            order.map((at) => texts[at]),
          );
          turn.held.open();
          await chat.settled(sessionId, 4);
          expect(await ran(sessionId)).to.deep.equal([marker, ...order.map((at) => texts[at])]);
          return won ? 'left' : 'right';
        },
      };
    },
    'a removal against consumption': async () => {
      const text = unique('taken');
      const after = gate();
      cluster.model.on(text, say('taken in', after));
      after.open();
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
          expect(await ran(sessionId)).to.deep.equal(won ? [marker] : [marker, text]);
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
          expect(await ran(sessionId)).to.deep.equal([marker, won ? edited : old]);
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
          expect(await ran(sessionId)).to.deep.equal([marker, text]);
          expect(requests(text)).to.equal(1);
          return won ? 'left' : 'right';
        },
      };
    },
  };

  for (const [what, prepare] of Object.entries(races)) {
    it(`${what} (${ROUNDS} rounds)`, async () => {
      for (let round = 0; round < ROUNDS; round += 1)
        await run(await prepare(), ORDERS[round % ORDERS.length] as Order);
    });
  }
});
