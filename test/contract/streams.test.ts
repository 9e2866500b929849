import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import type { Chat, TranscriptMessage } from '../support/chat.js';
import { eventually } from '../support/deadline.js';
import { unique } from '../support/environment.js';
import { gate } from '../support/gate.js';
import { say } from '../support/model-script.js';
import type { ProductProcess } from '../support/processes.js';
import type { SseEvent } from '../support/sse-parser.js';
import type { SseStream } from '../support/sse-stream.js';
import { useCluster } from '../support/suite.js';

const MEGABYTE = 1024 * 1024;

describe('many streams, and slow ones (section 4)', () => {
  describe('streams that wait', () => {
    const cluster = useCluster({ mains: 1, workers: 0 });
    const users = process.env.TURNKEEP_LONG ? 20 : 6;
    const each = 50;

    it(`${users * each} of them, opened and closed, leave no connection and no memory behind`, async function () {
      this.timeout(180_000);
      const main = cluster.mains[0] as ProductProcess;
      const chats = await Promise.all(Array.from({ length: users }, () => cluster.newChat()));
      const round = async () => {
        const streams: SseStream[] = [];
        await Promise.all(
          chats.map(async (chat) => {
            for (let count = 0; count < each; count++) streams.push(await chat.send('wait'));
          }),
        );
        await Promise.all(streams.map((stream) => stream.until('message-queued')));
        const open = await connections();
        for (const stream of streams) stream.close();
        await Promise.all(streams.map((stream) => stream.end()));
        // The count of streams a user is what says that the main let go of them.
        for (const chat of chats) await eventually('the main keeps closed streams', () => makesRoom(chat));
        return open;
      };
      const connections = async () => {
        const [row] = await cluster.db.query<{ count: number }>(
          'select count(*)::int as count from pg_stat_activity where datname = current_database()',
        );
        const list = String(await cluster.redis.client.call('client', 'list'));
        const database = new URL(cluster.redis.url).pathname.slice(1);
        const redis = list.split('\n').filter((line) => line.includes(` db=${database} `)).length;
        return { postgres: row?.count ?? 0, redis };
      };
      await round();
      const [connectedBefore, memoryBefore] = [await connections(), await residentBytes(main)];
      const open = await round();
      await round();
      expect(open.redis, 'Redis connections while they wait').to.be.at.most(connectedBefore.redis + 2);
      expect(open.postgres, 'Postgres connections while they wait').to.be.below(30);
      expect((await connections()).redis).to.be.at.most(connectedBefore.redis);
      expect((await residentBytes(main)) - memoryBefore, 'growth over two rounds').to.be.below(60 * MEGABYTE);
    });
  });

  describe('a reader that stalls', () => {
    const cluster = useCluster({ mains: 2, workers: 1 });

    it('costs a bounded amount of memory, slows no turn, and recovers by its cursor', async function () {
      this.timeout(120_000);
      const chat = await cluster.newChat();
      const [marker, warm] = [unique('flood'), unique('warm')];
      const chunks = Array.from({ length: 2_500 }, (_, at) => `${at}:${'x'.repeat(8_000)}`);
      const begin = gate();
      cluster.model.on(warm, say(...chunks));
      cluster.model.on(marker, say('', begin, ...chunks));
      const main = cluster.mains[0] as ProductProcess;
      // What a flood costs a main whose readers read.
      await chat.turn(warm);
      const before = await residentBytes(main);
      const stream = await chat.send(marker);
      const started = (await stream.until('execution-started')).data;
      const [sessionId, executionId] = [String(started.sessionId), String(started.executionId)];
      const others = await Promise.all(Array.from({ length: 30 }, () => chat.follow(sessionId, executionId)));
      for (const one of [stream, ...others]) one.stall();
      begin.open();
      const rows = await chat.settled(sessionId);
      expect(rows.map((row) => row.status)).to.deep.equal(['success']);
      // The kernel takes some MB for each; of what is left of 20 MB, 31 readers without a bound would hold 400 MB.
      expect((await residentBytes(main)) - before, 'what the stalled readers hold').to.be.below(120 * MEGABYTE);
      for (const one of others) one.close();

      stream.resumeReading();
      await stream.end(60_000);
      const after = stream.seen.findLast((event) => event.id !== undefined)?.id ?? '';
      const last = stream.seen.at(-1)?.data.type;
      const rest = last === 'done' ? [] : await recover(chat, sessionId, executionId, after);
      const events = [...stream.seen, ...rest];
      const at = events.findLastIndex((event) => event.data.type === 'snapshot');
      const text = snapshotText(events[at]) + deltas(events.slice(at + 1));
      expect(text === chunks.join(''), 'the whole text, nothing twice').to.equal(true);
      const { messages } = await chat.transcript(sessionId);
      expect(messages[1]?.content[0]?.text === chunks.join(''), 'the transcript').to.equal(true);
      expect(events.at(-1)?.data).to.include({ type: 'done', status: 'success' });
    });

    it('may be ended by the main while its reader is behind, without harm to anybody else', async function () {
      this.timeout(120_000);
      const chat = await cluster.newChat();
      const marker = unique('ended');
      const begin = gate();
      cluster.model.on(marker, say('', begin, ...Array.from({ length: 1_500 }, () => 'x'.repeat(8_000))));
      const tokens = `/admin/users/${chat.user.id}/tokens`;
      const issued = await cluster.admin().expect(201, tokens, { method: 'POST', body: { name: 'short' } });
      const { id, token } = issued.json<{ id: string; token: string }>();
      const push = await cluster.bearer(token).openSse('/push');
      const stream = await cluster.bearer(token).openSse(chat.path(), { method: 'POST', body: { message: marker } });
      const { sessionId } = (await stream.until('execution-started')).data;
      stream.stall();
      begin.open();
      await chat.settled(String(sessionId));
      // Its token goes, and so its streams are ended; the push stream tells when that has happened.
      await cluster.admin().delete(`${tokens}/${id}`);
      await push.end(5_000);
      stream.resumeReading();
      await stream.end(60_000);
      await chat.http().expect(200, '/me');
      for (const main of cluster.mains) expect(main.alive, main.tail(5)).to.equal(true);
    });
  });
});

/** Whether this user may open a stream again, having closed `MAX_STREAMS` of them. */
async function makesRoom(chat: Chat): Promise<boolean> {
  const streams: SseStream[] = [];
  try {
    for (let count = 0; count < 50; count++) streams.push(await chat.http().openSse('/push'));
    return true;
  } catch {
    return false;
  } finally {
    for (const stream of streams) stream.close();
  }
}

async function recover(chat: Chat, sessionId: string, executionId: string, after: string): Promise<SseEvent[]> {
  return (await chat.follow(sessionId, executionId, { after, main: 1 })).all(60_000);
}

function snapshotText(snapshot: SseEvent | undefined): string {
  const messages = (snapshot?.data.messages ?? []) as TranscriptMessage[];
  return messages
    .flatMap((message) => (message.role === 'assistant' ? message.content : []))
    .map((part) => part.text ?? '')
    .join('');
}

function deltas(events: readonly SseEvent[]): string {
  return events.map(({ data }) => (data.type === 'text-delta' ? String(data.delta) : '')).join('');
}

async function residentBytes(process: ProductProcess): Promise<number> {
  const status = await readFile(`/proc/${process.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}
