import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ProblemError, toProblem } from '@turnkeep/shared/contract/problems';
import type Koa from 'koa';
import type { State } from './context.js';

/** How long a client may take to send a request, headers and body, in ms. An answer may last as long as it wants. */
const REQUEST_MS = 300_000;
const HEADERS_MS = 30_000;
/** Longer than load balancers keep an idle connection (60 s is usual), so that it is not us who close under a request. */
const KEEP_ALIVE_MS = 65_000;

/** A server that listens. */
export interface Listening {
  port: number;
  /** Takes no new connections; those that are idle or have sent nothing are closed, the others once they have their answers. */
  stopListening(): void;
  /** Resolves when no connection is left, or after `ms`, when what is left was cut. */
  closed(ms: number): Promise<void>;
}

/**
 * Serves `app` on an address.
 * @param port 0 takes a free one
 * @throws where the address cannot be had
 */
export async function listen(app: Koa<State>, host: string, port: number): Promise<Listening> {
  const server = createServer(
    { requestTimeout: REQUEST_MS, headersTimeout: HEADERS_MS, keepAliveTimeout: KEEP_ALIVE_MS },
    app.callback(),
  );
  server.on('clientError', answerMalformed);
  const silent = silentSockets(server);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const ended = new Promise<void>((resolve) => server.once('close', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    stopListening: () => {
      server.close();
      for (const socket of silent) socket.destroy();
    },
    closed: (ms) => cutAfter(server, ended, ms),
  };
}

/** The connections that have sent no request yet: browsers open some ahead of need, and Node waits for those at a close. */
function silentSockets(server: Server): ReadonlySet<Socket> {
  const silent = new Set<Socket>();
  server.on('connection', (socket) => {
    silent.add(socket);
    socket.once('close', () => silent.delete(socket));
  });
  server.on('request', ({ socket }) => silent.delete(socket));
  return silent;
}

/** What is no HTTP never becomes a request: its problem is written to the socket, as section 8 has it, and that is the end. */
function answerMalformed(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const problem = toProblem(new ProblemError('invalid_request', 'The request is not valid HTTP for this server.'));
  const body = JSON.stringify(problem);
  const head = [
    'HTTP/1.1 400 Bad Request',
    'Content-Type: application/problem+json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

async function cutAfter(server: Server, ended: Promise<void>, ms: number): Promise<void> {
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), ms);
  await ended;
  clearTimeout(timer);
}
