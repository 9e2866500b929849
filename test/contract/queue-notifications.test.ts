import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { startSteeredTurn } from '../support/steered-turn.js';
import { useCluster } from '../support/suite.js';
import { answer } from '../support/tool-server.js';

describe('notifications of the queue (section 7)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    cluster.tools.on('quick', answer({ ok: true }));
    chat = await cluster.newChat({ tools: [cluster.httpTool('quick')] });
  });

  type Step = (turn: Awaited<ReturnType<typeof startSteeredTurn>>, a: string, b: string) => Promise<unknown>;
  const changes: Record<string, Step> = {
    'an edit': ({ queue }, a) => queue.edit(a, 'new words'),
    'a removal': ({ queue }, a) => queue.remove(a),
    'a reorder': ({ queue }, a, b) => queue.reorder(a, b, [a, b]),
    'a reservation': ({ queue, executionId }, a) => queue.steer(a, executionId),
    'a reservation given back': async ({ queue }, _, b) => queue.giveBack(b),
    'a Stop': ({ sessionId, executionId }) => chat.stop(sessionId, executionId),
    'a consumption': async ({ held }) => held.open(),
  };
  for (const [what, change] of Object.entries(changes)) {
    it(`tell of ${what}, on every main`, async () => {
      const turn = await startSteeredTurn(chat, cluster.model);
      const ids = [(await turn.accept('a')).queueId, (await turn.accept('b')).queueId] as const;
      if (/given back|Stop|consumption/.test(what)) await turn.queue.steer(ids[1], turn.executionId);
      const pushes = await Promise.all([0, 1].map((main) => chat.http(main).openSse('/push')));
      for (const push of pushes) await push.until('connected');
      await change(turn, ...ids);
      const data = { projectId: chat.projectId, agentId: chat.agentId, threadId: turn.sessionId };
      for (const push of pushes) {
        // Of the same user, the turn before may still be told about.
        const update = await push.until(
          ({ data: { type, data: of } }) =>
            type === 'agentMessageQueueUpdated' && (of as { threadId: string }).threadId === turn.sessionId,
          1_000,
        );
        expect(update.data.data).to.deep.equal(data);
        if (/^a reservation$|Stop|consumption/.test(what)) {
          const isTold = ({ data: { type, data: of } }: { data: { type: string; data?: unknown } }) =>
            type === 'agentExecutionUpdated' && (of as { executionId: string }).executionId === turn.executionId;
          if (!push.seen.some(isTold)) await push.until(isTold, 1_000);
        }
        push.close();
      }
      turn.held.open();
      await turn.stream.all();
    });
  }
});
