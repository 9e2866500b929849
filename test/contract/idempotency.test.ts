import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { say } from '../support/model-script.js';
import { expectProblem } from '../support/problem.js';
import { useCluster } from '../support/suite.js';
import { readTurn } from '../support/turn.js';

describe('safe retries by Idempotency-Key (section 4)', () => {
  const cluster = useCluster({ env: { MAX_PENDING: '2' } });
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat();
  });
  const key = () => ({ 'idempotency-key': randomUUID() });

  it('gives the first acceptance again, and runs one turn', async () => {
    const marker = unique('twice');
    cluster.model.on(marker, say('once'));
    const headers = key();
    const first = await chat.accept(marker, { headers });
    const second = await chat.accept(marker, { headers, main: 1 });
    expect(second).to.deep.equal(first);
    await chat.settled(first.sessionId);
    expect(await chat.accept(marker, { headers }), 'after the turn').to.deep.equal(first);
    expect(await chat.executions(first.sessionId)).to.have.length(1);
    expect(cluster.model.requestsFor(marker)).to.have.length(1);
  });

  it('takes one message from 20 racing requests on two mains', async () => {
    const marker = unique('race');
    const headers = key();
    const racers = Array.from({ length: 20 }, (_, at) => chat.accept(marker, { headers, main: at % 2 }));
    const accepted = await Promise.all(racers);
    for (const one of accepted) expect(one).to.deep.equal(accepted[0]);
    const { sessionId } = accepted[0] ?? { sessionId: '' };
    await chat.settled(sessionId);
    expect((await chat.transcript(sessionId)).messages).to.have.length(2);
    expect(cluster.model.requestsFor(marker)).to.have.length(1);
  });

  it('streams the same turn to 20 racing streams on two mains', async () => {
    const marker = unique('stream-race');
    const held = cluster.model.hold(marker, 'one', ' turn');
    const headers = key();
    const opened = Array.from({ length: 20 }, (_, at) => chat.send(marker, { headers, main: at % 2 }));
    const streams = await Promise.all(opened);
    held.open();
    const turns = await Promise.all(streams.map(readTurn));
    for (const turn of turns) expect(turn).to.include({ text: 'one turn', executionId: turns[0]?.executionId });
  });

  it('streams the events of the item from where it stands: running', async () => {
    const marker = unique('running');
    const held = cluster.model.hold(marker, 'early', ' late');
    const headers = key();
    const stream = await chat.send(marker, { headers });
    await held.reached();
    const again = await chat.send(marker, { headers, main: 1 });
    expect((await again.next()).data).to.deep.equal((await stream.next()).data);
    held.open();
    const [first, second] = [await stream.all(), await again.all()];
    expect(second.at(-1)?.data).to.deep.equal(first.at(-1)?.data);
  });

  it('streams the events of the item from where it stands: ended', async () => {
    const headers = key();
    const turn = await chat.turn('over and done', { headers });
    const again = await (await chat.send('over and done', { headers, main: 1 })).all();
    expect(again[0]?.data).to.deep.equal(turn.events[0]?.data);
    expect(again.at(-1)?.data).to.deep.equal(turn.events.at(-1)?.data);
  });

  it('works for a message into a session, and where the queue is full by now', async () => {
    const marker = unique('full');
    const held = cluster.model.hold(marker);
    const first = await chat.accept(marker);
    await held.reached();
    const { sessionId } = first;
    const headers = key();
    const kept = await chat.accept('kept', { sessionId, headers });
    await chat.accept('filler', { sessionId });
    const refused = key();
    const json = { headers: { accept: 'application/json', ...refused } };
    expectProblem(await chat.post({ message: 'more', sessionId }, json), 429, 'queue_full');
    expect(await chat.accept('kept', { sessionId, headers, main: 1 })).to.deep.equal(kept);
    held.open();
    await chat.settled(sessionId, 3);
    const late = await chat.accept('more', { sessionId, headers: refused });
    expect(late.sessionId, 'a refusal is not kept').to.equal(sessionId);
    await chat.settled(sessionId, 4);
  });

  it('422 idempotency_mismatch for the same key with another body or agent', async () => {
    const headers = key();
    const { sessionId } = await chat.accept('the one', { headers });
    const json = { headers: { accept: 'application/json', ...headers } };
    expectProblem(await chat.post({ message: 'the other' }, json), 422, 'idempotency_mismatch');
    expectProblem(await chat.post({ message: 'the one', sessionId }, json), 422, 'idempotency_mismatch');
    const agentId = await cluster.newAgent(chat.user, chat.projectId);
    const path = `/projects/${chat.projectId}/agents/v2/${agentId}/chat`;
    expectProblem(await chat.http().post(path, { message: 'the one' }, json), 422, 'idempotency_mismatch');
  });

  it('keeps keys of different users apart', async () => {
    const headers = key();
    const other = await cluster.newUser();
    await cluster.addMember(chat.user, chat.projectId, other, 'user');
    const mine = await chat.accept('hello', { headers });
    const theirs = await chat.as(other).accept('hello', { headers });
    expect(theirs.sessionId).not.to.equal(mine.sessionId);
  });

  it('400 for a key that is empty or longer than 255 characters', async () => {
    for (const value of ['', 'x'.repeat(256)]) {
      const headers = { accept: 'application/json', 'idempotency-key': value };
      expectProblem(await chat.post({ message: 'x' }, { headers }), 400, 'invalid_request');
    }
    await chat.accept('x', { headers: { 'idempotency-key': 'x'.repeat(255) } });
  });

  it('runs two messages that come without a key: removing duplicates is not promised', async () => {
    const first = await chat.accept('same');
    const second = await chat.accept('same');
    expect(second.sessionId).not.to.equal(first.sessionId);
  });

  it('gives the first acceptance also where the session was deleted since', async () => {
    const { sessionId } = await chat.turn(unique('session'));
    const marker = unique('deleted');
    const headers = key();
    const first = await chat.accept(marker, { sessionId, headers });
    await chat.settled(sessionId, 2);
    await chat.http().expect(200, chat.path(`/${sessionId}`), { method: 'DELETE' });
    expect(await chat.accept(marker, { sessionId, headers, main: 1 })).to.deep.equal(first);
    const other = await chat.post({ message: marker, sessionId }, { headers: key() });
    expect(other.status, 'with another key').to.equal(404);
  });
});
