// The bare worker: a BullMQ job does all that a turn must do, and nothing besides.
import { Agent, type IncomingMessage, request } from 'node:http';
import { Redlock } from '@sesamecare-oss/redlock';
import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import pg from 'pg';
import { type Ids, runOn } from './script.js';
import { BARE_QUEUE, bareStream, receiveSetup } from './setup.js';
import { prepareTurn } from './turn-scripts.js';

/** Longer than a transaction takes on the busiest machine: a lock that has run out cannot be released. */
const LOCK_MS = 30_000;
const KEPT_S = 330;

const { databaseUrl, redisUrl, modelUrl, concurrency, ...setup } = await receiveSetup();
const scripts = prepareTurn(setup.scripts);
const pool = new pg.Pool({ connectionString: databaseUrl, max: 20 });
const redis = new Redis(redisUrl);
const redlock = new Redlock([redis]);
const agent = new Agent({ keepAlive: true });

const worker = new Worker<Ids>(BARE_QUEUE.name, ({ data }) => turn(data), {
  connection: new Redis(redisUrl, { maxRetriesPerRequest: null }),
  prefix: BARE_QUEUE.prefix,
  concurrency,
});
worker.on('failed', (job, error) => {
  console.error(error);
  const { sessionId, executionId = '' } = job?.data ?? {};
  void append(bareStream(executionId), [{ type: 'done', sessionId, executionId, status: 'error' }]);
});
await worker.waitUntilReady();
process.send?.({ port: 0 });

async function turn(ids: Ids): Promise<void> {
  const { sessionId = '', executionId = '', text = '' } = ids;
  const key = bareStream(executionId);
  await locked(sessionId, () => runOn(pool, scripts.claim, ids));
  void append(key, [{ type: 'execution-started', executionId, sessionId }]);
  const answer = await ask(text, (deltas) => {
    void append(
      key,
      deltas.map((delta) => ({ type: 'text-delta', id: 'txt-0', delta })),
    );
  });
  const whole = { ...ids, answer };
  await runOn(pool, scripts.flush, whole);
  await locked(sessionId, () => runOn(pool, scripts.settle, whole));
  await append(key, [{ type: 'done', sessionId, executionId, status: 'success' }]);
  await redis.expire(key, KEPT_S);
}

async function locked(sessionId: string, work: () => Promise<void>): Promise<void> {
  const lock = await redlock.acquire([`{bare}:lock:${sessionId}`], LOCK_MS);
  await work();
  await lock.release();
}

async function append(key: string, events: object[]): Promise<void> {
  const pipeline = redis.pipeline();
  for (const event of events) pipeline.xadd(key, '*', 'e', JSON.stringify(event));
  await pipeline.exec();
}

/** One streamed request; answers the whole text. */
async function ask(text: string, onDeltas: (deltas: string[]) => void): Promise<string> {
  const messages = [
    { role: 'system', content: 'You are a test agent.' },
    { role: 'user', content: text },
  ];
  const body = JSON.stringify({ model: 'bench', messages, stream: true, stream_options: { include_usage: true } });
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const outgoing = request(`${modelUrl}/chat/completions`, { method: 'POST', agent, headers }, resolve);
    outgoing.on('error', reject);
    outgoing.end(body);
  });
  response.setEncoding('utf8');
  let answer = '';
  let rest = '';
  for await (const part of response) {
    const frames = (rest + (part as string)).split('\n\n');
    rest = frames.pop() ?? '';
    const deltas = frames.flatMap(deltaOf);
    if (deltas.length > 0) onDeltas(deltas);
    answer += deltas.join('');
  }
  return answer;
}

function deltaOf(frame: string): string[] {
  if (!frame.startsWith('data: {')) return [];
  const { choices } = JSON.parse(frame.slice(6)) as { choices: { delta: { content?: string } }[] };
  return choices.flatMap(({ delta }) => delta.content ?? []);
}
