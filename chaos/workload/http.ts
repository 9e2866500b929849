import { Agent, type IncomingMessage, request as nodeRequest } from 'node:http';
import type { Outcome } from '../history.js';

/** What a request says, beside its address. */
export interface Request {
  readonly method: string;
  readonly url: string;
  readonly token: string;
  readonly body?: object;
  readonly headers?: Record<string, string>;
}

/** The answer to a request: how it ended, and its body where it has one. */
export interface Answer {
  readonly outcome: Outcome;
  readonly body: Readonly<Record<string, unknown>>;
}

/** After so long without an answer a client gives a request up. */
const PATIENCE_MS = 4_000;

/** Asks and reads the whole answer. Never throws: whatever goes wrong is an outcome. */
export async function ask(request: Request): Promise<Answer> {
  try {
    const response = await open(request, 'application/json');
    return await read(response);
  } catch (error) {
    return { outcome: unknown(error), body: {} };
  }
}

/** Opens a stream; answers with the response where it is one, else with how the request ended. */
export async function openStream(request: Request): Promise<IncomingMessage | Answer> {
  try {
    const response = await open(request, 'text/event-stream');
    const isStream = response.headers['content-type']?.startsWith('text/event-stream') === true;
    return response.statusCode === 200 && isStream ? response : await read(response);
  } catch (error) {
    return { outcome: unknown(error), body: {} };
  }
}

function open({ method, url, token, body, headers }: Request, accept: string): Promise<IncomingMessage> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const content =
    text === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
  return new Promise((resolve, reject) => {
    const outgoing = nodeRequest(
      url,
      { method, agent: new Agent(), headers: { accept, authorization: `Bearer ${token}`, ...content, ...headers } },
      (response) => {
        clearTimeout(timer);
        resolve(response);
      },
    );
    const timer = setTimeout(() => outgoing.destroy(new Error('no answer in time')), PATIENCE_MS);
    outgoing.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    outgoing.end(text);
  });
}

async function read(response: IncomingMessage): Promise<Answer> {
  const timer = setTimeout(() => response.destroy(new Error('no end of the answer in time')), PATIENCE_MS);
  let text = '';
  try {
    response.setEncoding('utf8');
    for await (const part of response) text += part as string;
  } finally {
    clearTimeout(timer);
  }
  const status = response.statusCode ?? 0;
  const body = (text.startsWith('{') ? JSON.parse(text) : {}) as Record<string, unknown>;
  return { outcome: outcomeOf(status, body), body };
}

function outcomeOf(status: number, body: Readonly<Record<string, unknown>>): Outcome {
  if (status >= 200 && status < 300) return { kind: 'ok', status };
  if (status >= 500) return { kind: 'unknown', why: `${status} ${body.code ?? ''}` };
  return { kind: 'refused', status, code: String(body.code ?? '') };
}

function unknown(error: unknown): Outcome {
  return { kind: 'unknown', why: error instanceof Error ? error.message : String(error) };
}
