import { expect } from 'chai';
import type { Accepted, Chat } from '../support/chat.js';
import { type CommitWatch, watchCommits } from '../support/commits.js';
import { eventually, never } from '../support/deadline.js';
import { unique } from '../support/environment.js';
import { say } from '../support/model-script.js';
import type { PointedWorker } from '../support/points.js';
import { expectProblem } from '../support/problem.js';
import { holdRow } from '../support/row-lock.js';
import { type SteeredTurn, startSteeredTurn, userTexts } from '../support/steered-turn.js';
import { useCluster } from '../support/suite.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { answer } from '../support/tool-server.js';

const LEASE_MS = 2_000;
/** Section 9.5: recorded within LEASE_MS + 2 s; then section 4's 3 s until it is seen. */
const INTERRUPTED_MS = LEASE_MS + 2_000 + 3_000;
/** Long against a test's reaction to a commit. */
const LATE_MS = 80;

/** The internal boundary of section 6, with a worker that is held or killed at each point around it. */
describe('the boundary (sections 6 and 9)', function () {
  this.timeout(60_000);
  const cluster = useCluster({ mains: 2, workers: 0, env: { LEASE_MS: String(LEASE_MS) } });
  let chat: Chat;
  let worker: PointedWorker;
  before(async () => {
    cluster.tools.on('quick', answer({ ok: true }));
    chat = await cluster.newChat({ tools: [cluster.httpTool('quick')] });
  });
  beforeEach(async () => {
    if (cluster.workers.length === 0) worker = await cluster.startPointedWorker();
  });
  afterEach(async () => {
    const others = cluster.workers.splice(0).filter((one) => one.alive && one !== worker);
    for (const one of others) await one.stop();
    if (worker.alive) cluster.workers.push(worker);
  });

  /** A turn whose first step is not through, with a message reserved for it. */
  async function reserved(ends: 'call' | 'turn' = 'call') {
    const turn = await startSteeredTurn(chat, cluster.model, { ends });
    const text = unique('steered');
    cluster.model.on(text, say('seen'), say('seen again'));
    const item = await turn.accept(text);
    expect((await turn.other.steer(item.queueId, turn.executionId)).status).to.equal(200);
    return { ...turn, text, item };
  }

  describe('is real: while the recorder is held there', () => {
    for (const ends of ['call', 'turn'] as const) {
      it(`no request reaches the model, and the message is pending still (a step that ends by a ${ends})`, async () => {
        const turn = await reserved(ends);
        const boundary = await worker.hold('boundary');
        turn.held.open();
        await boundary.reached();
        const before = cluster.model.requests.length;
        await never('a request to the model', async () => cluster.model.requests.length > before, 500);
        expect((await turn.queue.read()).items[0]).to.include({ id: turn.item.queueId, message: turn.text });
        // Until it is consumed it may still be edited and removed, and others may join it.
        const late = await turn.accept(unique('late'));
        expect((await turn.other.steer(late.queueId, turn.executionId)).status).to.equal(200);
        expect((await turn.other.remove(turn.item.queueId)).status).to.equal(200);
        boundary.release();
        const events = await turn.stream.all();
        const steered = events.filter(({ data }) => data.type === 'message-steered').map(({ data }) => data.queueId);
        expect(steered).to.deep.equal([late.queueId]);
        expect(cluster.model.requestsFor(turn.text)).to.have.length(0);
      });
    }

    it('what came before it stands in the record when the message enters the transcript', async () => {
      const turn = await reserved();
      const steered = await worker.hold('steered');
      turn.held.open();
      await steered.reached();
      const { messages } = await chat.transcript(turn.sessionId, 1);
      expect(messages.map(({ content }) => content.map((part) => part.text ?? part.state))).to.deep.equal([
        [turn.marker],
        ['one', 'done'],
        [turn.text],
        [],
      ]);
      expect(cluster.model.requestsFor(turn.text)).to.have.length(0);
      steered.release();
      await turn.stream.all();
    });
  });

  it('a Stop before it: the boundary takes nothing in, no further request is made, the message runs later', async () => {
    const turn = await reserved();
    const boundary = await worker.hold('boundary');
    turn.held.open();
    await boundary.reached();
    expect(await chat.stop(turn.sessionId, turn.executionId, 1)).to.deep.equal({ cancelRequested: true });
    boundary.release();
    expect((await turn.stream.all()).at(-1)?.data).to.include({ status: 'cancelled' });
    const rows = await chat.settled(turn.sessionId, 2);
    expect(rows.map((row) => row.status)).to.deep.equal(['cancelled', 'success']);
    expect(cluster.model.requestsFor(turn.text)).to.have.length(1);
  });

  it('a Stop after it: what it took in stays with the execution, without another request, and is queued no more', async () => {
    const turn = await reserved();
    const steered = await worker.hold('steered');
    turn.held.open();
    await steered.reached();
    expect(await chat.stop(turn.sessionId, turn.executionId)).to.deep.equal({ cancelRequested: true });
    steered.release();
    const events = await turn.stream.all();
    expect(events.at(-1)?.data).to.include({ status: 'cancelled' });
    expect(events.filter(({ data }) => data.type === 'message-steered')).to.have.length(1);
    expect(await turn.other.ids()).to.deep.equal([]);
    expect((await chat.settled(turn.sessionId)).map((row) => row.status)).to.deep.equal(['cancelled']);
    expect(cluster.model.requestsFor(turn.text)).to.have.length(0);
    const next = unique('next');
    await chat.turn(next, { sessionId: turn.sessionId });
    expect(userTexts((await cluster.model.request(next)).body)).to.deep.equal([turn.marker, turn.text, next]);
  });

  it('what is reserved behind the last boundary that maxSteps permits goes back to its place', async () => {
    const limits = { maxSteps: 2, maxDurationMs: 600_000, maxToolOutputChars: 100_000 };
    const short = await cluster.newChat({ tools: [cluster.httpTool('quick')], limits });
    const turn = await startSteeredTurn(short, cluster.model);
    const [first, last] = [unique('first'), unique('last')];
    cluster.model.on(last, say('on my own'));
    const consumed = await turn.accept(first);
    await turn.queue.steer(consumed.queueId, turn.executionId);
    const steered = await worker.hold('steered');
    turn.held.open();
    await steered.reached();
    const { queueId } = await turn.accept(last);
    expect((await turn.queue.steer(queueId, turn.executionId)).status).to.equal(200);
    const before = await worker.hold('before-model');
    steered.release();
    await before.reached();
    expect(await turn.queue.read()).to.deep.include({ steerableExecutionId: null });
    expect((await turn.queue.read()).items[0]).to.include({ id: queueId, steeringExecutionId: null });
    before.release();
    const rows = await short.settled(turn.sessionId, 2);
    expect(rows.map((row) => row.status)).to.deep.equal(['success', 'success']);
    expect(userTexts((await cluster.model.request(last)).body)).to.deep.equal([turn.marker, first, last]);
  });

  describe('kill -9 of the worker', () => {
    /** Waits until the turn is interrupted and a fresh worker has run what is pending; checks what no kill may break. */
    async function aftermath(turn: SteeredTurn & { text: string; item: Accepted }, isConsumed: boolean) {
      const dead = await worker.exit;
      expect(dead.signal).to.equal('SIGKILL');
      await cluster.startWorker();
      const events = await turn.stream.all(INTERRUPTED_MS + 5_000);
      expect(events.at(-1)?.data).to.include({ type: 'done', status: 'interrupted' });
      const steered = events.filter(({ data }) => data.type === 'message-steered');
      expect(steered, 'announcements').to.have.length(isConsumed ? 1 : 0);
      const rows = await chat.settled(turn.sessionId, isConsumed ? 1 : 2);
      expect(rows.map((row) => row.status)).to.deep.equal(isConsumed ? ['interrupted'] : ['interrupted', 'success']);
      const { messages } = await chat.transcript(turn.sessionId, 1);
      const places = messages.filter(({ content }) => content[0]?.text === turn.text);
      expect(places, 'places in the transcript').to.have.length(1);
      expect(places[0]).to.include({ id: turn.item.messageId, executionId: rows[isConsumed ? 0 : 1]?.id });
      expect(await turn.queue.ids()).to.deep.equal([]);
      expectProblem(await turn.queue.remove(turn.item.queueId), 409, 'item_started');
    }

    for (const ends of ['call', 'turn'] as const) {
      const commit = ends === 'call' ? 'the boundary' : 'the last boundary';
      it(`before the transaction of ${commit}: the message goes back to its place, and runs once`, async () => {
        const turn = await reserved(ends);
        await worker.killAt('boundary');
        turn.held.open();
        await aftermath(turn, false);
        expect(cluster.model.requestsFor(turn.text)).to.have.length(1);
      });

      for (const [what, table] of [
        ['waits for the session lock', 'sessions'],
        ['has recorded what came before, and not yet moved the message', 'messages'],
      ] as const) {
        it(`in the transaction of ${commit}, when it ${what}: nothing of it holds`, async () => {
          const turn = await reserved(ends);
          const boundary = await worker.hold('boundary');
          turn.held.open();
          await boundary.reached();
          const id = table === 'sessions' ? turn.sessionId : turn.item.messageId;
          const lock = await holdRow(cluster.db, table, id);
          boundary.release();
          await lock.awaited();
          await worker.kill();
          await lock.release();
          await aftermath(turn, false);
          expect(cluster.model.requestsFor(turn.text)).to.have.length(1);
        });
      }

      it(`after the transaction of ${commit}: consumed for good, announced, and never queued again`, async () => {
        const turn = await reserved(ends);
        const waiting = await chat.send(unique('behind'), { sessionId: turn.sessionId, main: 1 });
        const queueId = (await waiting.until('message-queued')).data.queueId as string;
        await turn.queue.steer(queueId, turn.executionId);
        await worker.killAt('steered');
        turn.held.open();
        const told = await waiting.until('message-steered', 5_000);
        expect(told.data).to.include({ queueId, executionId: turn.executionId });
        expect(await waiting.end()).to.equal('clean');
        await worker.exit;
        await cluster.startWorker();
        const events = await turn.stream.all(INTERRUPTED_MS + 5_000);
        const steered = events.filter(({ data }) => data.type === 'message-steered').map(({ data }) => data.queueId);
        expect(steered).to.deep.equal([turn.item.queueId, queueId]);
        expect((await chat.settled(turn.sessionId)).map((row) => row.status)).to.deep.equal(['interrupted']);
        expect(cluster.model.requestsFor(turn.text)).to.have.length(0);
        expect(await turn.queue.ids()).to.deep.equal([]);
      });
    }

    it('before the next model request: consumed, and no request is made for it', async () => {
      const turn = await reserved();
      await worker.killAt('before-model');
      turn.held.open();
      await aftermath(turn, true);
      expect(cluster.model.requestsFor(turn.text)).to.have.length(0);
    });

    it('after the next model request: consumed, and the request is not made again', async () => {
      const turn = await reserved();
      await worker.killAt('after-model', 2);
      turn.held.open();
      await aftermath(turn, true);
      expect(cluster.model.requestsFor(turn.text)).to.have.length(1);
    });

    it('in a turn that follows, the model sees what was consumed, in its place', async () => {
      const turn = await reserved();
      await worker.killAt('after-model', 2);
      turn.held.open();
      await aftermath(turn, true);
      const next = unique('next');
      await chat.turn(next, { sessionId: turn.sessionId });
      expect(userTexts((await cluster.model.request(next)).body)).to.deep.equal([turn.marker, turn.text, next]);
    });
  });

  describe('a commit whose answer gets lost', () => {
    let proxy: TcpProxy;
    let commits: CommitWatch;
    beforeEach(async () => {
      await worker.stop();
      proxy = await new TcpProxy(cluster.db.url, 0, LATE_MS).start();
      worker = await cluster.startPointedWorker({ DATABASE_URL: proxy.url, LEASE_MS: '20000' });
      commits = await watchCommits(cluster.db, 'insert', 'queue_outcomes', `new.outcome = 'steered'`);
    });
    afterEach(async () => {
      await commits.stop();
      await worker.stop();
      await proxy.stop();
    });

    for (const ends of ['call', 'turn'] as const) {
      it(`is not made twice, and the model sees what it consumed (a step that ends by a ${ends})`, async () => {
        const turn = await reserved(ends);
        const committed = commits.next();
        turn.held.open();
        await committed;
        proxy.cut();
        // What comes meanwhile is reserved for the boundary after this one.
        const [later, text] = await Promise.all([turn.accept(unique('later')), turn.text]);
        await turn.queue.steer(later.queueId, turn.executionId);
        proxy.restore();
        await cluster.model.request(text);
        await turn.stream.until('message-steered');
        await eventually('the later one is not consumed', async () => (await turn.queue.ids()).length === 0);
        const events = await turn.stream.all();
        expect(events.at(-1)?.data).to.include({ status: 'success' });
        const steered = events.filter(({ data }) => data.type === 'message-steered').map(({ data }) => data.queueId);
        expect(steered).to.deep.equal([turn.item.queueId, later.queueId]);
        const { messages } = await chat.transcript(turn.sessionId, 1);
        expect(messages.map(({ role }) => role).join()).to.equal('user,assistant,user,assistant,user,assistant');
      });
    }
  });
});
