import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { refuse, say } from '../support/model-script.js';
import { expectProblem } from '../support/problem.js';
import { useCluster } from '../support/suite.js';
import { readTurn } from '../support/turn.js';

describe('several messages of one session (sections 6 and 9)', () => {
  const cluster = useCluster({ env: { MAX_PENDING: '10' } });
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat();
  });

  /** A session whose first turn stands still until `held` is opened. */
  async function busySession() {
    const marker = unique('busy');
    const held = cluster.model.hold(marker);
    const { sessionId } = await chat.accept(marker);
    await held.reached();
    return { sessionId, held };
  }

  it('wait while a turn runs, and stand in the queue in their order', async () => {
    const { sessionId, held } = await busySession();
    const accepted = [];
    for (const at of [0, 1, 2]) accepted.push(await chat.accept(`number ${at}`, { sessionId, main: at % 2 }));
    const queue = await chat.queue(sessionId, 1);
    expect(queue.items.map((item) => item.id)).to.deep.equal(accepted.map((one) => one.queueId));
    expect(queue.items[0]).to.deep.include({
      messageId: accepted[0]?.messageId,
      message: 'number 0',
      attachments: [],
      steeringExecutionId: null,
    });
    held.open();
    await chat.settled(sessionId, 4);
    expect((await chat.queue(sessionId)).items).to.deep.equal([]);
  });

  it('start in their order, one at a time, each with the history of those before', async () => {
    const { sessionId, held } = await busySession();
    const markers = Array.from({ length: 5 }, (_, at) => unique(`m${at}`));
    for (const marker of markers) cluster.model.on(marker, say(`answer to ${marker}`));
    for (const [at, marker] of markers.entries()) await chat.accept(marker, { sessionId, main: at % 2 });
    held.open();
    const rows = await chat.settled(sessionId, 6);
    for (const [at, row] of rows.entries()) {
      expect(row.status).to.equal('success');
      const before = rows[at - 1];
      if (before) expect(Date.parse(row.startedAt ?? '')).to.be.at.least(Date.parse(before.finishedAt ?? ''));
    }
    const { messages } = await chat.transcript(sessionId);
    const asked = messages.filter((message) => message.role === 'user').map((message) => message.content[0]?.text);
    expect(asked.slice(1)).to.deep.equal(markers);
    const history = JSON.stringify((await cluster.model.request(markers[4] ?? '')).body.messages);
    for (const marker of markers.slice(0, 4)) expect(history).to.contain(`answer to ${marker}`);
  });

  it('each stream gets the events of its own message only', async () => {
    const { sessionId, held } = await busySession();
    const markers = [unique('mine'), unique('yours')];
    for (const marker of markers) cluster.model.on(marker, say(`for ${marker}`));
    const streams = [];
    for (const [main, marker] of markers.entries()) streams.push(await chat.send(marker, { sessionId, main }));
    held.open();
    const turns = await Promise.all(streams.map(readTurn));
    expect(turns.map((turn) => turn.text)).to.deep.equal(markers.map((marker) => `for ${marker}`));
  });

  it('start at once when the turn before them ends', async () => {
    const { sessionId, held } = await busySession();
    const stream = await chat.send('next, please', { sessionId });
    await stream.until('message-queued');
    held.open();
    await stream.until('execution-started', 2_000);
    await stream.all();
  });

  it('of different sessions run beside each other', async () => {
    const both = [await busySession(), await busySession()];
    for (const { held } of both) held.open();
    for (const { sessionId } of both) await chat.settled(sessionId);
  });

  it('a failed turn does not hold up the next', async () => {
    const [bad, good] = [unique('bad'), unique('good')];
    cluster.model.on(bad, refuse(400));
    cluster.model.on(good, say('fine'));
    const { sessionId, held } = await busySession();
    await chat.accept(bad, { sessionId });
    await chat.accept(good, { sessionId });
    held.open();
    const rows = await chat.settled(sessionId, 3);
    expect(rows.map((row) => row.status)).to.deep.equal(['success', 'error', 'success']);
  });

  it('429 queue_full for one more than MAX_PENDING, from two mains at once', async () => {
    const { sessionId, held } = await busySession();
    const headers = { accept: 'application/json' };
    const sends = Array.from({ length: 14 }, (_, at) =>
      chat.post({ message: `filler ${at}`, sessionId }, { main: at % 2, headers }),
    );
    const answers = await Promise.all(sends);
    expect(answers.filter((answer) => answer.status === 202)).to.have.length(10);
    for (const answer of answers.filter((one) => one.status !== 202)) expectProblem(answer, 429, 'queue_full');
    expect((await chat.queue(sessionId)).items).to.have.length(10);
    held.open();
    await chat.settled(sessionId, 11);
  });
});
