import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { say } from '../support/model-script.js';
import type { SseEvent } from '../support/sse-parser.js';
import type { SseStream } from '../support/sse-stream.js';
import { useCluster } from '../support/suite.js';
import { checkHeaders } from '../support/turn.js';

describe('notifications (section 7)', () => {
  const cluster = useCluster();
  let chat: Chat;
  let pushes: SseStream[];
  beforeEach(async () => {
    chat = await cluster.newChat();
    pushes = await Promise.all([0, 1].map((main) => chat.http(main).openSse('/push')));
    for (const push of pushes) expect((await push.next()).data).to.deep.equal({ type: 'connected' });
  });
  afterEach(() => {
    for (const push of pushes) push.close();
  });
  const about =
    (type: string, threadId: string, executionId?: string) =>
    ({ data }: SseEvent): boolean => {
      const detail = data.data as Record<string, unknown> | undefined;
      const same = executionId === undefined || detail?.executionId === executionId;
      return data.type === type && detail?.threadId === threadId && same;
    };

  it('is an event stream', () => {
    for (const push of pushes) checkHeaders(push);
  });

  it('tells every main of a new message, an execution that starts, grows and settles', async () => {
    const marker = unique('watched');
    const held = cluster.model.hold(marker, 'some', ' more');
    const stream = await chat.send(marker);
    const started = (await stream.until('execution-started')).data;
    const [sessionId, executionId] = [String(started.sessionId), String(started.executionId)];
    for (const push of pushes) {
      await push.until(about('agentMessageQueueUpdated', sessionId));
      const update = await push.until(about('agentExecutionUpdated', sessionId, executionId));
      expect(update.data.data).to.deep.equal({
        projectId: chat.projectId,
        agentId: chat.agentId,
        threadId: sessionId,
        executionId,
      });
    }
    await held.reached();
    held.open();
    await stream.all();
    // After the last of them a read shows the settled state.
    for (const push of pushes) {
      for (;;) {
        await push.until(about('agentExecutionUpdated', sessionId, executionId), 2_000);
        if ((await chat.executions(sessionId))[0]?.status === 'success') break;
      }
    }
  });

  it('tells of a queued message and its removal by a start', async () => {
    const marker = unique('busy');
    const held = cluster.model.hold(marker);
    const { sessionId } = await chat.accept(marker);
    await held.reached();
    const push = await chat.http(1).openSse('/push');
    pushes.push(push);
    await push.until('connected');
    await chat.accept('later', { sessionId });
    const update = await push.until(about('agentMessageQueueUpdated', sessionId));
    expect(update.data.data).to.deep.equal({
      projectId: chat.projectId,
      agentId: chat.agentId,
      threadId: sessionId,
    });
    held.open();
    await push.until(about('agentExecutionUpdated', sessionId));
    await chat.settled(sessionId, 2);
  });

  it('carries no content, and nothing of other users', async () => {
    const other = await cluster.newUser();
    await cluster.addMember(chat.user, chat.projectId, other, 'user');
    const theirs = await other.on(1).openSse('/push');
    pushes.push(theirs);
    await theirs.until('connected');
    const marker = unique('private');
    cluster.model.on(marker, say('private answer'));
    const mine = await chat.turn(marker);
    // A turn of the other user: what stands on their stream before its notifications is all that they got of ours.
    const own = await chat.as(other).turn('hello', { main: 1 });
    await theirs.until(about('agentExecutionUpdated', own.sessionId));
    expect(JSON.stringify(theirs.seen)).not.to.contain(mine.sessionId);
    await pushes[0]?.until(about('agentExecutionUpdated', mine.sessionId));
    for (const push of pushes) expect(JSON.stringify(push.seen)).not.to.match(/private answer|private-/);
  });

  it('batches: far fewer notifications than chunks, at most 4 a second for a session', async () => {
    const marker = unique('chatty');
    const chunks = Array.from({ length: 400 }, (_, at) => `${at} `);
    cluster.model.on(marker, say(...chunks));
    const begun = performance.now();
    const turn = await chat.turn(marker);
    const push = pushes[0] as SseStream;
    for (;;) {
      await push.until(about('agentExecutionUpdated', turn.sessionId), 2_000);
      if ((await chat.executions(turn.sessionId))[0]?.status === 'success') break;
    }
    const seconds = (performance.now() - begun) / 1_000;
    const updates = push.seen.filter(about('agentExecutionUpdated', turn.sessionId));
    expect(updates.length).to.be.at.most(4 * Math.ceil(seconds) + 4);
  });
});
