// A model that costs next to nothing: an OpenAI-compatible server that says as many chunks as the user's message asks for
// (`say COUNT every MS`), each chunk being the time at which it was sent.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { nowMs } from '../clock.js';

/** Chunks that go out in one write where no time is to pass between them. */
const AT_ONCE = 10;

const server = createServer((request, response) => {
  answer(request, response).catch(() => response.destroy());
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on('disconnect', () => process.exit(0));

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  // The last order in the body is the newest message's.
  const [order] = [
    ...Buffer.concat(parts)
      .toString()
      .matchAll(/say (\d+) every (\d+)/g),
  ].slice(-1);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.socket?.setNoDelay(true);
  await say(response, Number(order?.[1] ?? 1), Number(order?.[2] ?? 0));
}

async function say(response: ServerResponse, count: number, everyMs: number): Promise<void> {
  const step = everyMs === 0 ? AT_ONCE : 1;
  const start = nowMs();
  for (let said = 0; said < count && !response.destroyed; said += step) {
    if (everyMs > 0) await until(start + said * everyMs);
    let frames = '';
    for (let i = said; i < Math.min(count, said + step); i += 1) frames += chunk(`${Math.round(nowMs() * 1000)} `);
    if (said + step >= count && everyMs === 0) frames += END;
    if (!response.write(frames)) await once(response, 'drain');
  }
  response.end(everyMs > 0 ? END : undefined);
}

async function until(time: number): Promise<void> {
  const ms = time - nowMs();
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
}

function chunk(content: string): string {
  return frame({ choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }] });
}

function frame(fields: object): string {
  const common = { id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1, model: 'bench' };
  return `data: ${JSON.stringify({ ...common, ...fields })}\n\n`;
}

const END = `${frame({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}${frame({
  choices: [],
  usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 },
})}data: [DONE]\n\n`;
