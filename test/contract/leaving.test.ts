import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { gate } from '../support/gate.js';
import { callTool, reply, say } from '../support/model-script.js';
import { useCluster } from '../support/suite.js';
import { answer } from '../support/tool-server.js';

/** The events of the turn below after which the browser leaves. */
const POINTS = [
  'message-queued',
  'execution-started',
  'start-step',
  'text-delta',
  'tool-call',
  'tool-result',
  'finish-step',
];

describe('a browser that leaves (section 4): the turn goes on', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat({ tools: [cluster.httpTool('look')] });
    cluster.tools.on('look', answer('seen'));
  });

  async function expectWhole(sessionId: string): Promise<void> {
    const rows = await chat.settled(sessionId);
    expect(rows.map((row) => row.status)).to.deep.equal(['success']);
    const { messages } = await chat.transcript(sessionId);
    const texts = messages[1]?.content.map((part) => part.text ?? part.state);
    expect(texts).to.deep.equal(['before', 'done', 'after']);
  }

  function script(marker: string) {
    const held = gate();
    cluster.model.on(marker, reply(say('before'), callTool('look', {})), say(held, 'after'));
    return held;
  }

  for (const point of POINTS) {
    it(`after ${point}`, async () => {
      const marker = unique('leaves');
      const held = script(marker);
      const stream = await chat.send(marker, { main: POINTS.indexOf(point) % 2 });
      await stream.until(point);
      stream.close();
      held.open();
      await expectWhole(String(stream.seen[0]?.data.sessionId));
    });
  }

  /** Sends a whole request and answers with its socket, of which nobody reads. */
  async function sendUnread(body: object, headers: string[] = []) {
    const url = new URL(chat.http().baseUrl);
    const json = JSON.stringify(body);
    const lines = [
      `POST ${chat.path()} HTTP/1.1`,
      `Host: ${url.host}`,
      `Authorization: Bearer ${chat.user.token}`,
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(json)}`,
      ...headers,
    ];
    const socket = connect(Number(url.port), url.hostname);
    await new Promise<void>((resolve) => socket.write(`${lines.join('\r\n')}\r\n\r\n${json}`, () => resolve()));
    return socket;
  }

  it('before it has read a byte of the answer', async () => {
    const marker = unique('unread');
    const held = script(marker);
    const sessionId = randomUUID();
    const socket = await sendUnread({ message: marker, sessionId });
    await cluster.model.request(marker);
    socket.destroy();
    held.open();
    await expectWhole(sessionId);
  });

  it('right behind its request: a retry with its key makes one turn of both', async () => {
    const marker = unique('gone');
    script(marker).open();
    const [sessionId, key] = [randomUUID(), randomUUID()];
    (await sendUnread({ message: marker, sessionId }, [`Idempotency-Key: ${key}`])).destroy();
    await chat.accept(marker, { sessionId, headers: { 'idempotency-key': key }, main: 1 });
    await expectWhole(sessionId);
  });

  it('in the middle of its request: nothing is accepted', async () => {
    const before = (await chat.http().expect(200, chat.path())).json();
    const url = new URL(chat.http().baseUrl);
    const socket = connect(Number(url.port), url.hostname);
    const head = `POST ${chat.path()} HTTP/1.1\r\nHost: ${url.host}\r\nAuthorization: Bearer ${chat.user.token}\r\n`;
    const half = `${head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"message":"ha`;
    await new Promise<void>((resolve) => socket.write(half, () => resolve()));
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.destroy();
    await closed;
    await chat.http().expect(200, '/me');
    expect((await chat.http().expect(200, chat.path())).json()).to.deep.equal(before);
  });
});
