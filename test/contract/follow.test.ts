import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Chat, TranscriptMessage } from '../support/chat.js';
import { eventually } from '../support/deadline.js';
import { unique } from '../support/environment.js';
import { gate } from '../support/gate.js';
import { callTool, reply, say, think } from '../support/model-script.js';
import { expectProblem } from '../support/problem.js';
import type { SseEvent } from '../support/sse-parser.js';
import { useCluster } from '../support/suite.js';
import { answer } from '../support/tool-server.js';
import { checkExecution, checkHeaders, type Turn } from '../support/turn.js';

describe('following an execution from elsewhere (section 4)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat({ tools: [cluster.httpTool('look')] });
    cluster.tools.on('look', answer({ seen: true }));
  });

  /** A turn with some of everything, at its end. */
  async function richTurn(): Promise<Turn> {
    const marker = unique('rich');
    cluster.model.on(marker, reply(think('hm'), say('Let', ' me'), callTool('look', { at: 'it' })), say('Seen', '.'));
    return chat.turn(marker);
  }

  const plain = (events: readonly SseEvent[]) => events.map(({ id, data }) => ({ id, data }));

  it('streams a running turn from its start, on the other main, to the end', async () => {
    const marker = unique('other-tab');
    const held = cluster.model.hold(marker, 'before', 'after');
    const stream = await chat.send(marker);
    const { sessionId, executionId } = (await stream.until('execution-started')).data;
    await held.reached();
    const tab = await chat.follow(String(sessionId), String(executionId), { main: 1 });
    checkHeaders(tab);
    await tab.until('text-delta');
    held.open();
    const [original, followed] = [await stream.all(), await tab.all()];
    checkExecution(followed);
    expect(plain(followed)).to.deep.equal(plain(original.slice(1)));
  });

  it('streams an ended turn from its start, in the five minutes after it', async () => {
    const turn = await richTurn();
    const followed = await (await chat.follow(turn.sessionId, turn.executionId, { main: 1 })).all();
    checkExecution(followed);
    expect(plain(followed)).to.deep.equal(plain(turn.events.slice(1)));
  });

  it('goes on exactly after any Last-Event-ID', async () => {
    const turn = await richTurn();
    const events = turn.events.slice(1);
    for (const [at, event] of events.entries()) {
      if (event.id === undefined || event.data.type === 'done') continue;
      const rest = await (await chat.follow(turn.sessionId, turn.executionId, { after: event.id, main: at % 2 })).all();
      expect(plain(rest), `after ${event.data.type}`).to.deep.equal(plain(events.slice(at + 1)));
    }
  });

  it('ends where the cursor of `done` is given', async () => {
    const turn = await richTurn();
    const after = turn.events.at(-1)?.id ?? '';
    const rest = await (await chat.follow(turn.sessionId, turn.executionId, { after })).all();
    expect(rest.every((event) => event.data.type === 'done')).to.equal(true);
  });

  it('counts a cursor of another execution, from the future, or of nonsense as none', async () => {
    const [turn, other] = [await richTurn(), await richTurn()];
    const future = unique('future');
    const held = cluster.model.hold(future);
    const stream = await chat.send(future);
    await stream.until('execution-started');
    await held.reached();
    const cursors = [other.events.at(3)?.id, '999999999-0', '-1', 'nonsense', '0', `${'9'.repeat(400)}-0`];
    for (const after of cursors) {
      const followed = await (await chat.follow(turn.sessionId, turn.executionId, { after: String(after) })).all();
      expect(plain(followed), `from ${after}`).to.deep.equal(plain(turn.events.slice(1)));
    }
    held.open();
    await stream.all();
  });

  it('lets one leave and come back in the middle, missing and repeating nothing', async () => {
    const marker = unique('comeback');
    const gates = [gate(), gate(), gate()] as const;
    cluster.model.on(marker, say('a', gates[0], 'b', gates[1], 'c', gates[2], 'd'));
    const stream = await chat.send(marker);
    const { sessionId, executionId } = (await stream.until('execution-started')).data;
    const collected: SseEvent[] = [];
    let after: string | undefined;
    for (const [at, held] of gates.entries()) {
      await held.reached();
      const tab = await chat.follow(String(sessionId), String(executionId), { ...(after && { after }), main: at % 2 });
      after = (await tab.until((event) => event.data.type === 'text-delta' && event.data.delta === 'abc'[at])).id;
      collected.push(...tab.seen);
      tab.close();
      held.open();
    }
    collected.push(
      ...(await (await chat.follow(String(sessionId), String(executionId), { after: after ?? '' })).all()),
    );
    expect(plain(collected)).to.deep.equal(plain((await stream.all()).slice(1)));
  });

  it('reports a cancelled turn to its end as well', async () => {
    const marker = unique('cancelled');
    const held = cluster.model.hold(marker);
    const stream = await chat.send(marker);
    const { sessionId, executionId } = (await stream.until('execution-started')).data;
    await held.reached();
    const tab = await chat.follow(String(sessionId), String(executionId), { main: 1 });
    await chat.stop(String(sessionId), String(executionId));
    expect((await tab.all()).at(-1)?.data).to.include({ type: 'done', status: 'cancelled' });
  });

  describe('when the events are gone from Redis', () => {
    it('begins with a snapshot of an ended execution, then `done`', async () => {
      const turn = await richTurn();
      const { messages } = await chat.transcript(turn.sessionId);
      await cluster.redis.client.flushdb();
      for (const main of [0, 1]) {
        const followed = await (await chat.follow(turn.sessionId, turn.executionId, { main })).all();
        expect(followed.map((event) => event.data.type)).to.deep.equal(['snapshot', 'done']);
        expect(followed[0]?.id).to.be.a('string');
        const snapshot = followed[0]?.data.messages as TranscriptMessage[];
        expect(snapshot).to.deep.equal(messages);
        expect(followed[1]?.data).to.deep.equal(turn.events.at(-1)?.data);
      }
    });

    it('begins with a snapshot for a cursor that is no longer kept, too', async () => {
      const turn = await richTurn();
      await cluster.redis.client.flushdb();
      const after = turn.events[4]?.id ?? '';
      const followed = await (await chat.follow(turn.sessionId, turn.executionId, { after })).all();
      expect(followed.map((event) => event.data.type)).to.deep.equal(['snapshot', 'done']);
    });

    it('goes on after a snapshot exactly where it ends, with the text announced again', async () => {
      const marker = unique('flushed');
      const held = cluster.model.hold(marker, 'one two three', ' four five');
      const stream = await chat.send(marker);
      const started = (await stream.until('execution-started')).data;
      const [sessionId, executionId] = [String(started.sessionId), String(started.executionId)];
      await held.reached();
      await eventually('the text is not recorded', async () => {
        const { messages } = await chat.transcript(sessionId);
        return messages.at(-1)?.content[0]?.text === 'one two three';
      });
      stream.close();
      await cluster.redis.client.flushdb();
      const tab = await chat.follow(sessionId, executionId, { main: 1 });
      const snapshot = await tab.next();
      expect(snapshot.data.type).to.equal('snapshot');
      held.open();
      const rest = (await tab.all()).slice(1);
      expect(rest[0]?.data.type, 'what follows the snapshot').to.equal('text-start');
      expect(textIn(snapshot) + deltas(rest)).to.equal('one two three four five');
      expect(rest.at(-1)?.data).to.include({ type: 'done', status: 'success' });
      const ids = [snapshot, ...rest].map((event) => event.id);
      expect(new Set(ids).size, `cursors: ${ids}`).to.equal(ids.length);
    });
  });

  it('comes to the whole text when Redis loses its events in the middle, if by further snapshots', async () => {
    const marker = unique('lossy');
    const gates = [gate(), gate(), gate()] as const;
    cluster.model.on(marker, say('one', gates[0], ' two', gates[1], ' three', gates[2], ' four'));
    const stream = await chat.send(marker);
    await stream.until('execution-started');
    for (const held of gates) {
      await held.reached();
      await cluster.redis.client.flushdb();
      held.open();
    }
    const events = await stream.all();
    const at = events.findLastIndex((event) => event.data.type === 'snapshot');
    const snapshot = events[at];
    expect((snapshot ? textIn(snapshot) : '') + deltas(events.slice(at + 1))).to.equal('one two three four');
    expect(events.at(-1)?.data).to.include({ type: 'done', status: 'success' });
  });

  it('404 for an execution that is not there, or of another session', async () => {
    const [turn, other] = [await richTurn(), await richTurn()];
    const path = (sessionId: string, executionId: string) =>
      chat.path(`/${sessionId}/executions/${executionId}/events`);
    expectProblem(await chat.http().get(path(turn.sessionId, randomUUID())), 404, 'not_found');
    expectProblem(await chat.http().get(path(turn.sessionId, other.executionId)), 404, 'not_found');
  });

  it('429 too_many_streams beyond MAX_STREAMS of one user over all mains; a closed one makes room', async () => {
    const guest = await cluster.newChat();
    const streams = await Promise.all(Array.from({ length: 50 }, (_, at) => guest.http(at % 2).openSse('/push')));
    for (const main of [0, 1]) expectProblem(await guest.http(main).get('/push'), 429, 'too_many_streams');
    for (const stream of streams) stream.close();
    await guest.turn('room again');
  });
});

function textIn(snapshot: SseEvent): string {
  const messages = snapshot.data.messages as TranscriptMessage[];
  const parts = messages.filter((message) => message.role === 'assistant').flatMap((message) => message.content);
  return parts.map((part) => part.text ?? '').join('');
}

function deltas(events: readonly SseEvent[]): string {
  return events.map(({ data }) => (data.type === 'text-delta' ? String(data.delta) : '')).join('');
}
