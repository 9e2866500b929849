import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { type CommitWatch, watchCommits } from '../support/commits.js';
import { unique } from '../support/environment.js';
import { callTool, never, reply, say, think } from '../support/model-script.js';
import { expectProblem } from '../support/problem.js';
import type { SseStream } from '../support/sse-stream.js';
import { useCluster } from '../support/suite.js';
import { answer, silence } from '../support/tool-server.js';

describe('Stop (sections 5 and 9)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat({ tools: [cluster.httpTool('slow'), cluster.httpTool('quick')] });
    cluster.tools.on('slow', silence());
    cluster.tools.on('quick', answer({ ok: true }));
  });
  afterEach(() => cluster.model.idle());

  async function started(stream: SseStream): Promise<{ sessionId: string; executionId: string }> {
    const { sessionId, executionId } = (await stream.until('execution-started')).data;
    return { sessionId: String(sessionId), executionId: String(executionId) };
  }

  for (const main of [0, 1]) {
    it(`in the middle of a text, by main ${main}: the request is aborted, the text stays, the turn is cancelled`, async () => {
      const marker = unique('text');
      const held = cluster.model.hold(marker, 'half a sen');
      const stream = await chat.send(marker);
      const { sessionId, executionId } = await started(stream);
      await held.reached();
      await stream.until('text-delta');
      expect(await chat.stop(sessionId, executionId, main)).to.deep.equal({ cancelRequested: true });
      expect((await stream.all()).at(-1)?.data).to.include({ type: 'done', status: 'cancelled', executionId });
      expect(await (await cluster.model.request(marker)).over).to.equal('aborted');
      const { messages, activeExecutionId } = await chat.transcript(sessionId);
      expect(activeExecutionId).to.equal(null);
      expect(messages.at(-1)).to.deep.include({
        status: 'cancelled',
        content: [{ type: 'text', text: 'half a sen' }],
      });
      expect((await chat.executions(sessionId))[0]).to.include({ status: 'cancelled', error: null });
    });
  }

  it('before the model says anything', async () => {
    const marker = unique('silent');
    cluster.model.on(marker, never());
    const stream = await chat.send(marker);
    const { sessionId, executionId } = await started(stream);
    const request = await cluster.model.request(marker);
    await chat.stop(sessionId, executionId, 1);
    expect((await stream.all()).at(-1)?.data).to.include({ status: 'cancelled' });
    expect(await request.over).to.equal('aborted');
  });

  it('right at the start, the moment that the execution is known', async () => {
    for (let round = 0; round < 10; round++) {
      const marker = unique('at-once');
      cluster.model.on(marker, never());
      const stream = await chat.send(marker, { main: round % 2 });
      const { sessionId, executionId } = await started(stream);
      await chat.stop(sessionId, executionId, (round + 1) % 2);
      expect((await stream.all()).at(-1)?.data).to.include({ status: 'cancelled' });
    }
  });

  it('in a tool call: its request is aborted and the call recorded as cancelled', async () => {
    const marker = unique('in-tool');
    cluster.model.on(marker, reply(say('Looking'), callTool('slow', {})));
    const count = cluster.tools.callsOf('slow').length;
    const stream = await chat.send(marker);
    const { sessionId, executionId } = await started(stream);
    const call = await cluster.tools.call('slow', count + 1);
    await chat.stop(sessionId, executionId, 1);
    expect((await stream.all()).at(-1)?.data).to.include({ status: 'cancelled' });
    expect(await call.over).to.equal('aborted');
    const { messages } = await chat.transcript(sessionId);
    expect(messages.at(-1)?.content.map((part) => part.state ?? part.type)).to.deep.equal(['text', 'cancelled']);
  });

  it('of a batch, what had ended stays done and the rest is cancelled', async () => {
    const marker = unique('batch');
    cluster.model.on(marker, reply(callTool('quick', {}), callTool('slow', {})));
    const count = cluster.tools.callsOf('slow').length;
    const stream = await chat.send(marker);
    const { sessionId, executionId } = await started(stream);
    await cluster.tools.call('slow', count + 1);
    await stream.until('tool-result');
    await chat.stop(sessionId, executionId);
    await stream.all();
    const { messages } = await chat.transcript(sessionId);
    expect(messages.at(-1)?.content.map((part) => part.state)).to.deep.equal(['done', 'cancelled']);
  });

  it('twice, and from both mains at once: one cancelled turn', async () => {
    const marker = unique('twice');
    const held = cluster.model.hold(marker);
    const stream = await chat.send(marker);
    const { sessionId, executionId } = await started(stream);
    await held.reached();
    const answers = await Promise.all([0, 1].map((main) => chat.stop(sessionId, executionId, main)));
    expect(answers.some((one) => one.cancelRequested)).to.equal(true);
    await stream.all();
    expect((await chat.executions(sessionId)).map((row) => row.status)).to.deep.equal(['cancelled']);
  });

  it('too late: false, and nothing changes', async () => {
    const turn = await chat.turn('Quickly now');
    const before = await chat.transcript(turn.sessionId);
    for (const main of [0, 1]) {
      const answered = await chat.stop(turn.sessionId, turn.executionId, main);
      expect(answered).to.deep.equal({ cancelRequested: false });
    }
    expect(await chat.transcript(turn.sessionId)).to.deep.equal(before);
  });

  it('names one execution and never touches a later one', async () => {
    const turn = await chat.turn('The earlier one');
    const marker = unique('later');
    const held = cluster.model.hold(marker, 'un', 'touched');
    const stream = await chat.send(marker, { sessionId: turn.sessionId });
    await stream.until('execution-started');
    await held.reached();
    expect(await chat.stop(turn.sessionId, turn.executionId, 1)).to.deep.equal({ cancelRequested: false });
    held.open();
    expect((await stream.all()).at(-1)?.data).to.include({ status: 'success' });
  });

  it('leaves what is pending, and the next message starts once the cancellation has settled', async () => {
    const [first, second] = [unique('stopped'), unique('next')];
    const held = cluster.model.hold(first);
    cluster.model.on(second, say('My turn'));
    const stream = await chat.send(first);
    const { sessionId, executionId } = await started(stream);
    await held.reached();
    const waiting = await chat.send(second, { sessionId, main: 1 });
    await waiting.until('message-queued');
    await chat.stop(sessionId, executionId, 1);
    await stream.all();
    expect((await waiting.all()).at(-1)?.data).to.include({ status: 'success' });
    const rows = await chat.executions(sessionId);
    expect(rows.map((row) => row.status)).to.deep.equal(['cancelled', 'success']);
    const [stopped, next] = rows;
    expect(Date.parse(next?.startedAt ?? '')).to.be.at.least(Date.parse(stopped?.finishedAt ?? ''));
  });

  describe('what the model sees of it in the next turn', () => {
    const shapes: Record<string, { script: () => ReturnType<typeof say>; until: string }> = {
      'a partial text': { script: () => reply(say('half'), never()), until: 'text-delta' },
      'nothing at all': { script: () => never(), until: 'start-step' },
      'reasoning only': { script: () => reply(think('hm'), never()), until: 'reasoning-delta' },
      'a complete call without a result': { script: () => reply(say('a'), callTool('slow', {})), until: 'tool-call' },
      'a call that had not come to its end': {
        script: () => reply(callTool('slow', { a: 'long argument' }), never()),
        until: 'tool-input-delta',
      },
      'one of two results': {
        script: () => reply(callTool('quick', {}), callTool('slow', {})),
        until: 'tool-result',
      },
    };
    for (const [what, { script, until }] of Object.entries(shapes)) {
      it(`${what}: a history that a strict provider takes`, async () => {
        const [marker, next] = [unique('cut'), unique('then')];
        cluster.model.on(marker, script());
        const stream = await chat.send(marker);
        const { sessionId, executionId } = await started(stream);
        await stream.until(until);
        await chat.stop(sessionId, executionId);
        expect((await stream.all()).at(-1)?.data).to.include({ status: 'cancelled' });
        cluster.model.on(next, say('fine'));
        expect(await chat.turn(next, { sessionId })).to.include({ text: 'fine', status: 'success' });
      });
    }

    it('a result says that the user cancelled, and reasoning is gone', async () => {
      const [marker, next] = [unique('told'), unique('asked')];
      cluster.model.on(marker, reply(think('secret thoughts'), say('partial'), callTool('slow', {})));
      const stream = await chat.send(marker);
      const { sessionId, executionId } = await started(stream);
      await stream.until('tool-call');
      await chat.stop(sessionId, executionId);
      await stream.all();
      await chat.turn(next, { sessionId });
      const { body } = await cluster.model.request(next);
      const history = JSON.stringify(body.messages);
      expect(history).to.contain('partial').and.not.to.contain('secret thoughts');
      const result = body.messages?.find((message) => message.role === 'tool');
      expect(JSON.stringify(result?.content)).to.match(/cancel/i);
    });
  });

  it('404 for an execution that never was, or of another session', async () => {
    const [turn, other] = [await chat.turn('one'), await chat.turn('two')];
    for (const id of [randomUUID(), other.executionId, 'x']) {
      const response = await chat.http().delete(chat.path(`/${turn.sessionId}/executions/${id}`));
      expectProblem(response, 404, 'not_found');
    }
  });

  describe('at random instants of turns, from admission to settling', () => {
    const rounds = process.env.TURNKEEP_LONG ? 500 : 60;
    const seed = Number(process.env.TURNKEEP_SEED ?? Date.now() % 1_000_000);
    let claims: CommitWatch;
    before(async () => {
      claims = await watchCommits(cluster.db, 'insert', 'executions');
    });
    after(() => claims.stop());

    /** A turn of two steps and a tool call, then a second turn of the same session; Stop of the first comes `when`. */
    async function round(main: number, when: (stream: SseStream) => Promise<unknown>): Promise<string> {
      const [marker, next, sessionId] = [unique('random'), unique('after'), randomUUID()];
      cluster.model.on(marker, reply(say('a', 'b'), callTool('quick', {})), say('c', 'd'));
      const claimed = claims.next({ session_id: sessionId });
      const stream = await chat.send(marker, { main, sessionId });
      const instant = when(stream);
      const executionId = String((await claimed).id);
      await instant;
      const asked = chat.stop(sessionId, executionId, 1 - main);
      const waiting = chat.turn(next, { sessionId });
      const { cancelRequested } = await asked;
      const status = (await stream.all()).at(-1)?.data.status;
      // Requested while it ran, it is cancelled; not requested, it had ended before.
      expect(status).to.equal(cancelRequested ? 'cancelled' : 'success');
      expect((await waiting).status, 'the next turn').to.equal('success');
      return String(status);
    }

    it(`${rounds} of them (TURNKEEP_SEED=${seed}): cancelled or ended before, and no later turn is touched`, async function () {
      this.timeout(120_000 + rounds * 1_000);
      const random = randomNumbers(seed);
      const outcomes: string[] = [];
      for (let at = 0; at < rounds; at++) {
        const events = Math.floor(random() * 12);
        const delayMs = random() * 80;
        const instants = [
          // The very commit of the claim: before its cancel handle may be registered.
          async () => {},
          async (stream: SseStream) => {
            await stream.until('execution-started');
            for (let passed = 0; passed < events; passed++) await stream.next();
          },
          () => new Promise((resolve) => setTimeout(resolve, delayMs)),
        ];
        outcomes.push(await round(at % 2, instants[at % 3] ?? (async () => {})));
      }
      expect(outcomes).to.include('cancelled').and.to.include('success');
    });
  });
});

/** Numbers from 0 to 1 that a seed determines (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
