import { expect } from 'chai';
import type { Chat, Queue } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { gate } from '../support/gate.js';
import { say } from '../support/model-script.js';
import { expectProblem } from '../support/problem.js';
import { shown, startSteeredTurn, userTexts } from '../support/steered-turn.js';
import { useCluster } from '../support/suite.js';
import { answer } from '../support/tool-server.js';
import { checkExecution } from '../support/turn.js';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

describe('steering (sections 6 and 9)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    cluster.tools.on('quick', answer({ ok: true }));
    chat = await cluster.newChat({ tools: [cluster.httpTool('quick')] });
  });

  it('reserves: the message stays in the queue until the step is through, then the model sees it', async () => {
    const turn = await startSteeredTurn(chat, cluster.model);
    const steered = unique('steered');
    const after = gate();
    cluster.model.on(steered, say('as you say', after));
    const waiting = await chat.send(steered, { sessionId: turn.sessionId, main: 1 });
    const { queueId, messageId } = (await waiting.until('message-queued')).data;
    expect((await turn.other.read()).steerableExecutionId).to.equal(turn.executionId);
    const reserved = await turn.other.steer(String(queueId), turn.executionId);
    expect(reserved.status).to.equal(200);
    expect(reserved.json()).to.deep.equal(await turn.queue.read());
    expect(reserved.json<Queue>().items[0]).to.include({ id: queueId, steeringExecutionId: turn.executionId });
    expect(cluster.model.requestsFor(steered)).to.have.length(0);

    const followed = await chat.follow(turn.sessionId, turn.executionId, { main: 1 });
    turn.held.open();
    const { body } = await cluster.model.request(steered);
    const roles = (body.messages ?? []).map((message) => message.role);
    expect(roles).to.deep.equal(['system', 'user', 'assistant', 'tool', 'user']);
    expect(userTexts(body)).to.deep.equal([turn.marker, steered]);
    expect(await turn.queue.ids()).to.deep.equal([]);

    const message = { id: messageId, text: steered, attachments: [] };
    const event = { type: 'message-steered', queueId, executionId: turn.executionId, message };
    for (const stream of [turn.stream, followed, waiting])
      expect((await stream.until('message-steered', 3_000)).data).to.deep.equal(event);
    expect(await waiting.end()).to.equal('clean');
    expect(waiting.seen.map(({ data }) => data.type)).to.deep.equal(['message-queued', 'message-steered']);

    await after.reached();
    const live = await chat.transcript(turn.sessionId, 1);
    expect(shown(live).slice(0, 3)).to.deep.equal([
      ['user', turn.marker],
      ['assistant', 'one', 'quick'],
      ['user', steered],
    ]);
    after.open();
    for (const stream of [turn.stream, followed]) {
      const events = (await stream.all()).filter(({ data }) => data.type !== 'message-queued');
      checkExecution(events);
      expect(events.filter(({ data }) => data.type === 'message-steered')).to.have.length(1);
      const types = events.map(({ data }) => data.type);
      const at = types.indexOf('message-steered');
      expect([types[at - 1], types[at + 1]]).to.deep.equal(['finish-step', 'start-step']);
    }
    const reloaded = await chat.transcript(turn.sessionId);
    expect(shown(reloaded)).to.deep.equal([...shown(live).slice(0, 3), ['assistant', 'as you say']]);
    expect(
      reloaded.messages.map(({ id }) => id),
      'segments keep their ids',
    ).to.deep.equal(live.messages.map(({ id }) => id));
    expect(reloaded.messages[2]).to.include({ id: messageId, executionId: turn.executionId });
    expect(await chat.executions(turn.sessionId)).to.have.length(1);
  });

  it('at the end of a turn too: it is consumed and the turn goes on', async () => {
    const turn = await startSteeredTurn(chat, cluster.model, { ends: 'turn' });
    const steered = unique('at-the-end');
    cluster.model.on(steered, say('more'));
    const { queueId } = await turn.accept(steered);
    await turn.queue.steer(queueId, turn.executionId);
    turn.held.open();
    const events = (await turn.stream.all()).map(({ data }) => data.type);
    expect(events.filter((type) => /step|steered|done/.test(type))).to.deep.equal([
      'start-step',
      'finish-step',
      'message-steered',
      'start-step',
      'finish-step',
      'done',
    ]);
    const rows = await chat.executions(turn.sessionId);
    expect(rows.map((row) => row.status)).to.deep.equal(['success']);
    expect(shown(await chat.transcript(turn.sessionId, 1))).to.deep.equal([
      ['user', turn.marker],
      ['assistant', 'one'],
      ['user', steered],
      ['assistant', 'more'],
    ]);
    const later = await chat.turn('and then?', { sessionId: turn.sessionId });
    const { body } = await cluster.model.request('and then?');
    expect(userTexts(body)).to.deep.equal([turn.marker, steered, 'and then?']);
    expect(later.status).to.equal('success');
  });

  it('several come in by the order of reservations, at one boundary, in front of what is not reserved', async () => {
    const turn = await startSteeredTurn(chat, cluster.model);
    const texts = [0, 1, 2, 3].map((at) => unique(`several${at}`));
    const ids: string[] = [];
    for (const text of texts) ids.push((await turn.accept(text)).queueId);
    for (const at of [2, 0, 3]) await turn.other.steer(ids[at] ?? '', turn.executionId);
    // Given back and reserved again, it goes to the end; reserved twice, it keeps its place.
    await turn.queue.giveBack(ids[2] ?? '');
    await turn.queue.steer(ids[2] ?? '', turn.executionId);
    await turn.queue.steer(ids[0] ?? '', turn.executionId);
    const order = [0, 3, 2];
    cluster.model.on(texts[2] ?? '', say('all three'));
    turn.held.open();
    const events = await turn.stream.all();
    const steered = events.filter(({ data }) => data.type === 'message-steered').map(({ data }) => data.queueId);
    expect(steered).to.deep.equal(order.map((at) => ids[at]));
    await chat.settled(turn.sessionId, 2);
    const { body } = await cluster.model.request(texts[2] ?? '');
    expect(userTexts(body)).to.deep.equal([turn.marker, ...order.map((at) => texts[at])]);
    const users = shown(await chat.transcript(turn.sessionId)).filter(([role]) => role === 'user');
    expect(users.map(([, text]) => text)).to.deep.equal([turn.marker, ...[...order, 1].map((at) => texts[at])]);
  });

  it('a reserved message may be edited and removed: its last text is what the model sees, or nothing of it', async () => {
    const turn = await startSteeredTurn(chat, cluster.model);
    const [draft, final, doomed] = [unique('draft'), unique('final'), unique('doomed')];
    cluster.model.on(final, say('understood'));
    const files = [{ fileName: 'dot.png', mimeType: 'image/png', data: PIXEL }];
    const first = await chat.accept(draft, { sessionId: turn.sessionId, attachments: files });
    const second = await chat.send(doomed, { sessionId: turn.sessionId });
    const { queueId } = (await second.until('message-queued')).data;
    await turn.queue.steer(first.queueId, turn.executionId);
    await turn.queue.steer(String(queueId), turn.executionId);
    expect((await turn.other.edit(first.queueId, final)).json()).to.include({ steeringExecutionId: turn.executionId });
    expect((await turn.other.remove(String(queueId))).json()).to.deep.equal({ removed: true });
    expect((await second.all()).map(({ data }) => data.type)).to.deep.equal(['message-queued', 'message-removed']);
    turn.held.open();
    const events = await turn.stream.all();
    const [steered] = events.filter(({ data }) => data.type === 'message-steered').map(({ data }) => data.message);
    expect(steered).to.deep.include({ id: first.messageId, text: final });
    expect((steered as { attachments: unknown[] }).attachments).to.have.length(1);
    expect(shown(await chat.transcript(turn.sessionId))[2]).to.deep.equal(['user', final, 'dot.png']);
    const sent = JSON.stringify(cluster.model.requests.map((request) => request.body));
    for (const text of [draft, doomed]) expect(sent).not.to.contain(text);
  });

  it('given back, it waits at the place that it had, and runs as a turn of its own', async () => {
    const turn = await startSteeredTurn(chat, cluster.model);
    const ids: string[] = [];
    for (const text of ['a', 'b', 'c']) ids.push((await turn.accept(text)).queueId);
    const [, b = ''] = ids;
    await turn.queue.steer(b, turn.executionId);
    const back = await turn.other.giveBack(b);
    expect(back.status).to.equal(200);
    expect(back.json<Queue>().items.map(({ id, steeringExecutionId }) => [id, steeringExecutionId])).to.deep.equal(
      ids.map((id) => [id, null]),
    );
    expect((await turn.queue.giveBack(b)).json(), 'again: nothing happens').to.deep.equal(back.json());
    turn.held.open();
    await chat.settled(turn.sessionId, 4);
    const users = shown(await chat.transcript(turn.sessionId)).filter(([role]) => role === 'user');
    expect(users.map(([, text]) => text)).to.deep.equal([turn.marker, 'a', 'b', 'c']);
  });

  it('consumed, it is gone from the queue for good: item_started for every change', async () => {
    const turn = await startSteeredTurn(chat, cluster.model);
    const { queueId } = await turn.accept(unique('gone'));
    await turn.queue.steer(queueId, turn.executionId);
    turn.held.open();
    await turn.stream.until('message-steered');
    const stays = await turn.accept('stays a moment');
    const changes = [
      turn.queue.edit(queueId, 'x'),
      turn.other.remove(queueId),
      turn.queue.reorder(queueId, queueId, []),
      turn.other.steer(queueId, turn.executionId),
      turn.queue.giveBack(queueId),
    ];
    for (const change of await Promise.all(changes)) expectProblem(change, 409, 'item_started');
    await turn.stream.all();
    await chat.settled(turn.sessionId, 2);
    expectProblem(await turn.queue.remove(queueId), 409, 'item_started');
    expectProblem(await turn.queue.steer(stays.queueId, turn.executionId), 409, 'item_started');
  });

  it('a retry with the key of a message that was steered in or removed is told what became of it', async () => {
    const turn = await startSteeredTurn(chat, cluster.model);
    const send = (text: string, key: string, main: number) =>
      chat.send(text, { sessionId: turn.sessionId, main, headers: { 'idempotency-key': key } });
    const [steered, removed] = [unique('steered'), unique('removed')];
    const ids: string[] = [];
    for (const text of [steered, removed]) {
      const stream = await send(text, text, 0);
      ids.push(String((await stream.until('message-queued')).data.queueId));
      stream.close();
    }
    await turn.queue.steer(ids[0] ?? '', turn.executionId);
    await turn.queue.remove(ids[1] ?? '');
    turn.held.open();
    await turn.stream.all();
    const became = { [steered]: 'message-steered', [removed]: 'message-removed' };
    for (const [text, type] of Object.entries(became)) {
      const types = (await (await send(text, text, 1)).all()).map(({ data }) => data.type);
      expect(types).to.deep.equal(['message-queued', type]);
    }
    expect(await turn.queue.ids()).to.deep.equal([]);
  });

  it('a reader that comes back after `message-steered` gets it no second time', async () => {
    const turn = await startSteeredTurn(chat, cluster.model);
    const steered = unique('once');
    const after = gate();
    cluster.model.on(steered, say('yes', after));
    const { queueId } = await turn.accept(steered);
    await turn.queue.steer(queueId, turn.executionId);
    turn.held.open();
    const { id = '' } = await turn.stream.until('message-steered');
    await after.reached();
    const back = await chat.follow(turn.sessionId, turn.executionId, { after: id, main: 1 });
    after.open();
    const types = (await back.all()).map(({ data }) => data.type);
    expect(types).not.to.include('message-steered');
    expect(types.slice(0, 2)).to.deep.equal(['start-step', 'text-start']);
  });
});
