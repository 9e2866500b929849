import { expect } from 'chai';
import type { Chat, Queue } from '../support/chat.js';
import { eventually } from '../support/deadline.js';
import { unique } from '../support/environment.js';
import { gate } from '../support/gate.js';
import type { HttpResponse } from '../support/http.js';
import { callTool, reply, say } from '../support/model-script.js';
import { expectProblem } from '../support/problem.js';
import { QueueClient } from '../support/queue.js';
import { type Race, ROUNDS, ran, runRaces } from '../support/race.js';
import { startSteeredTurn } from '../support/steered-turn.js';
import { useCluster } from '../support/suite.js';

/**
 * Two changes of one session at once, through different processes (section 6: 'claim, edit, removal, reorder, steer, Stop and
 * completion cannot interleave').
 */
describe('changes against a turn that ends or stops: one side wins, and both are told the truth', function () {
  this.timeout(120_000 + ROUNDS * 5_000);
  const cluster = useCluster({ mains: 2, workers: 1 });
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat({ tools: [cluster.httpTool('act', { requireApproval: true })] });
  });

  /** The execution takes no steers any more; where the session had time to go on, the message has started by itself. */
  function expectTooLate(answer: HttpResponse): void {
    const { code } = answer.json<{ code: string }>();
    expect(code).to.be.oneOf(['execution_not_steerable', 'item_started']);
    expectProblem(answer, 409, code);
  }

  function requests(text: string): number {
    return cluster.model.requestsFor(text).length;
  }

  const races: Record<string, () => Promise<Race>> = {
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
          if (!won) expectTooLate(answer);
          expect(await ran(chat, sessionId)).to.deep.equal([marker, text]);
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
          if (!won) expectTooLate(answer);
          const rows = await chat.settled(sessionId, won ? 1 : 2);
          expect(rows).to.have.length(won ? 1 : 2);
          const steered = (await turn.stream.all()).filter(({ data }) => data.type === 'message-steered');
          expect(steered).to.have.length(won ? 1 : 0);
          expect(await ran(chat, sessionId)).to.deep.equal([marker, text]);
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
          expect(await ran(chat, sessionId)).to.deep.equal([marker, ...order.map((at) => texts[at])]);
          return won ? 'left' : 'right';
        },
      };
    },
    'a steer against suspension': async () => {
      const [marker, text] = [unique('suspends'), unique('kept')];
      const held = gate();
      cluster.model.on(marker, reply(say('one', held), callTool('act', {})));
      const stream = await chat.send(marker);
      const { sessionId, executionId } = (await stream.until('execution-started')).data as Record<string, string>;
      await held.reached();
      const { queueId } = await chat.accept(text, { sessionId: sessionId ?? '', main: 1 });
      const queue = new QueueClient(chat, sessionId ?? '', 1);
      return {
        sessionId: sessionId ?? '',
        left: () => queue.steer(queueId, executionId ?? ''),
        right: async () => held.open(),
        outcome: async (answer) => {
          const won = answer.status === 200;
          if (!won) expectProblem(answer, 409, 'execution_not_steerable');
          expect((await stream.all()).at(-1)?.data).to.include({ status: 'suspended' });
          expect((await queue.read()).items[0]).to.include({ id: queueId, steeringExecutionId: null });
          await chat.stop(sessionId ?? '', executionId ?? '');
          await eventually(
            'the message does not run',
            async () => (await chat.executions(sessionId ?? '')).length === 2,
          );
          const rows = await chat.settled(sessionId ?? '', 2);
          expect(rows.map((row) => row.status)).to.deep.equal(['cancelled', 'success']);
          expect(await ran(chat, sessionId ?? '')).to.deep.equal([marker, text]);
          return won ? 'left' : 'right';
        },
      };
    },
  };

  for (const [what, prepare] of Object.entries(races)) {
    it(`${what} (${ROUNDS} rounds)`, () => runRaces(cluster.db, chat, prepare));
  }
});
