// The bare main: Koa, `pg`, BullMQ and XREAD with nothing around them. It answers the product's route for sending with the
// product's statements, so that the same load can be put on both.
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Router from '@koa/router';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import Koa from 'koa';
import pg from 'pg';
import { type Ids, runOn } from './script.js';
import { BARE_QUEUE, bareStream, receiveSetup } from './setup.js';
import { newIds, prepareTurn } from './turn-scripts.js';

const { databaseUrl, redisUrl, ...setup } = await receiveSetup();
const scripts = prepareTurn(setup.scripts);
const pool = new pg.Pool({ connectionString: databaseUrl, max: 20 });
const queue = new Queue<Ids>(BARE_QUEUE.name, { connection: new Redis(redisUrl), prefix: BARE_QUEUE.prefix });
const readers: Redis[] = [];

const router = new Router();
router.post('/projects/:projectId/agents/v2/:agentId/chat', async (ctx) => {
  await runOn(pool, scripts.lookUp, {});
  const parts: Buffer[] = [];
  for await (const part of ctx.req) parts.push(part as Buffer);
  const { message } = JSON.parse(Buffer.concat(parts).toString()) as { message: string };
  const ids = newIds(message);
  await runOn(pool, scripts.accept, ids);
  const { queueId, sessionId, messageId } = ids;
  if (ctx.req.headers.accept === 'application/json') {
    ctx.status = 202;
    ctx.body = { queueId, sessionId, messageId };
    return;
  }
  void queue.add('turn', ids, { removeOnComplete: true });
  ctx.respond = false;
  ctx.res.writeHead(200, { 'content-type': 'text/event-stream' });
  ctx.res.write(`data: ${JSON.stringify({ type: 'message-queued', queueId, sessionId, messageId })}\n\n`);
  await relay(ctx.res, bareStream(ids.executionId ?? ''));
});

/** Carries a stream to a response, over a blocking connection of its own, until `done`. */
async function relay(response: ServerResponse, key: string): Promise<void> {
  const reader = readers.pop() ?? new Redis(redisUrl);
  let lastId = '0';
  for (let done = false; !done && !response.destroyed; ) {
    const [stream] = (await reader.xread('BLOCK', 5_000, 'STREAMS', key, lastId)) ?? [];
    let frames = '';
    for (const [id, fields] of stream?.[1] ?? []) {
      const line = fields[1] ?? '';
      frames += `id: ${id}\ndata: ${line}\n\n`;
      lastId = id;
      done ||= line.startsWith('{"type":"done"');
    }
    response.write(frames);
  }
  readers.push(reader);
  response.end();
}

const app = new Koa();
app.use(router.routes());
const server = app.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
