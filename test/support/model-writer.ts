import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { ModelRequestBody } from './model-rules.js';
import type { Part, Reply, Usage } from './model-script.js';

const DEFAULT_USAGE: Usage = { input: 11, output: 7 };

/** Plays a scripted reply into the response, in the form that the request asked for; `gone` resolves when it closes. */
export async function writeReply(
  response: ServerResponse,
  body: ModelRequestBody,
  reply: Reply,
  gone: Promise<unknown>,
): Promise<void> {
  if (reply.options.body !== undefined) return writeRaw(response, reply);
  if (body.stream === true) return writeStream(response, body, reply, gone);
  return writeWhole(response, body, reply, gone);
}

function writeRaw(response: ServerResponse, reply: Reply): void {
  const { status = 200, headers = {}, body = '' } = reply.options;
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(body);
}

async function writeStream(
  response: ServerResponse,
  body: ModelRequestBody,
  reply: Reply,
  gone: Promise<unknown>,
): Promise<void> {
  const chunk = chunkMaker(body);
  const write = reply.options.bytewise === true ? bytewise(response, gone) : whole(response, gone);
  const deltas = deltaMaker();
  const silent = reply.parts[0]?.kind === 'never' || reply.parts[0]?.kind === 'cut';
  if (!silent) {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
    await write(sse(chunk([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }])));
  }
  for (const part of reply.parts) {
    if (part.kind === 'gate') await part.gate.pass(gone);
    else if (part.kind === 'never') await gone;
    else if (part.kind === 'cut') response.destroy();
    else if (part.kind === 'raw') await write(part.text);
    else for (const delta of deltas(part)) await write(sse(chunk([{ index: 0, delta, finish_reason: null }])));
    if (response.destroyed) return;
  }
  await write(sse(chunk([{ index: 0, delta: {}, finish_reason: finishOf(reply) }])));
  if (body.stream_options?.include_usage === true) await write(sse({ ...chunk([]), usage: usageOf(reply) }));
  await write('data: [DONE]\n\n');
  response.end();
}

async function writeWhole(
  response: ServerResponse,
  body: ModelRequestBody,
  reply: Reply,
  gone: Promise<unknown>,
): Promise<void> {
  const message: Record<string, unknown> = { role: 'assistant', content: null };
  for (const part of reply.parts) {
    if (part.kind === 'gate') await part.gate.pass(gone);
    else if (part.kind === 'never') await gone;
    else if (part.kind === 'cut') response.destroy();
    if (response.destroyed) return;
  }
  const join = (kind: 'text' | 'reasoning') =>
    reply.parts.map((part) => (part.kind === kind ? part.text : '')).join('') || undefined;
  const calls = reply.parts.filter((part) => part.kind === 'tool');
  Object.assign(message, { content: join('text') ?? null, reasoning_content: join('reasoning') });
  if (calls.length > 0) message.tool_calls = calls.map(wholeCall);
  response.writeHead(200, { 'content-type': 'application/json' });
  const choice = { index: 0, message, finish_reason: finishOf(reply) };
  response.end(JSON.stringify({ ...head(body), object: 'chat.completion', choices: [choice], usage: usageOf(reply) }));
}

function wholeCall(part: Extract<Part, { kind: 'tool' }>): object {
  return { id: part.id ?? callId(), type: 'function', function: { name: part.name, arguments: part.pieces.join('') } };
}

function head(body: ModelRequestBody): object {
  return { id: `chatcmpl-${randomUUID()}`, created: Math.floor(Date.now() / 1000), model: body.model };
}

function chunkMaker(body: ModelRequestBody): (choices: object[]) => object {
  const same = { ...head(body), object: 'chat.completion.chunk' };
  return (choices) => ({ ...same, choices });
}

/** Turns parts into deltas as OpenAI sends them; tool calls are numbered over the answer. */
function deltaMaker(): (part: Part) => object[] {
  let index = 0;
  return (part) => {
    if (part.kind === 'text') return [{ content: part.text }];
    if (part.kind === 'reasoning') return [{ reasoning_content: part.text }];
    if (part.kind !== 'tool') return [];
    const at = index++;
    const start = {
      index: at,
      id: part.id ?? callId(),
      type: 'function',
      function: { name: part.name, arguments: '' },
    };
    const pieces = part.pieces.map((piece) => ({ index: at, function: { arguments: piece } }));
    return [start, ...pieces].map((call) => ({ tool_calls: [call] }));
  };
}

function callId(): string {
  return `call_${randomUUID().replaceAll('-', '').slice(0, 24)}`;
}

function finishOf(reply: Reply): string {
  return reply.options.finish ?? (reply.parts.some((part) => part.kind === 'tool') ? 'tool_calls' : 'stop');
}

function usageOf(reply: Reply): object {
  const { input, output } = reply.options.usage ?? DEFAULT_USAGE;
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
}

function sse(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

type Write = (text: string) => Promise<void>;

function whole(response: ServerResponse, gone: Promise<unknown>): Write {
  return (text) => flushed(response, Buffer.from(text), gone);
}

function bytewise(response: ServerResponse, gone: Promise<unknown>): Write {
  return async (text) => {
    for (const byte of Buffer.from(text)) await flushed(response, Buffer.from([byte]), gone);
  };
}

/** Resolves once the bytes have been handed to the socket, or the client is gone. */
async function flushed(response: ServerResponse, bytes: Buffer, gone: Promise<unknown>): Promise<void> {
  if (response.destroyed) return;
  await Promise.race([new Promise((resolve) => response.write(bytes, resolve)), gone]);
}
