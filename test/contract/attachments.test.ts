import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { download, inline, PNG, type Sent, startedWith, TEXT, upload } from '../support/attachments.js';
import type { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { expectProblem } from '../support/problem.js';
import { QueueClient } from '../support/queue.js';
import { S3Server } from '../support/s3-server.js';
import { useCluster } from '../support/suite.js';

const LIMITS = { MAX_ATTACHMENT_BYTES: '100000', MAX_ATTACHMENTS: '4' };

describe('attachments (sections 4 and 5)', () => {
  describe('in Postgres', () => attachments(LIMITS));

  describe('in an S3 store', () => {
    const store = new S3Server();
    const env: Record<string, string> = { ...LIMITS };
    before(async () => {
      await store.start();
      Object.assign(env, store.environment());
    });
    after(async () => {
      await store.stop();
      expect(store.refused).to.deep.equal([]);
      expect(store.objects.size).to.be.above(0);
    });
    attachments(env);
  });
});

/** What holds wherever the bytes are. */
function attachments(env: Record<string, string>): void {
  const cluster = useCluster({ env });
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat();
  });

  /** A turn that stands still, so that what is sent after it waits. */
  async function busySession() {
    const marker = unique('busy');
    const held = cluster.model.hold(marker);
    const stream = await chat.send(marker);
    const { executionId, sessionId } = (await stream.until('execution-started')).data;
    return { held, sessionId: String(sessionId), executionId: String(executionId) };
  }

  /** The last user message with this text that the model got, as JSON. */
  async function toldWith(marker: string): Promise<string> {
    const { body } = await cluster.model.request(marker);
    const message = body.messages?.findLast((one) => JSON.stringify(one.content).includes(marker));
    return JSON.stringify(message);
  }

  it('sent with a message, are part of it: in the start event, the transcript, and as bytes', async () => {
    const files = [inline(TEXT, 'ü 😀.txt'), inline(PNG, 'dot.png', 'image/png')];
    const turn = await chat.turn('Look at these', { attachments: files });
    const { messages } = await chat.transcript(turn.sessionId, 1);
    const parts = messages[0]?.content.filter((part) => part.type === 'file') ?? [];
    expect(parts.map(({ fileName, mimeType, sizeBytes }) => ({ fileName, mimeType, sizeBytes }))).to.deep.equal([
      { fileName: 'ü 😀.txt', mimeType: 'text/plain', sizeBytes: TEXT.length },
      { fileName: 'dot.png', mimeType: 'image/png', sizeBytes: PNG.length },
    ]);
    const ids = parts.map((part) => String(part.attachmentId));
    expect(startedWith(turn).map((one) => one.attachmentId)).to.deep.equal(ids);
    const bytes = await Promise.all(ids.map((id) => download(chat, id, 1)));
    expect(bytes.map((one) => one.bytes)).to.deep.equal([TEXT, PNG]);
  });

  it('may stand alone, without a text', async () => {
    const turn = await chat.turn('', { attachments: [inline(TEXT)] });
    const { messages } = await chat.transcript(turn.sessionId);
    expect(messages[0]?.content.map((part) => part.type)).to.deep.equal(['file']);
    expect((await chat.turn('And now?', { sessionId: turn.sessionId })).status).to.equal('success');
  });

  describe('reach the model', () => {
    const IMAGE = { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG.toString('base64')}` } };
    const files = () => [
      inline(PNG, 'dot.png', 'application/octet-stream'),
      inline(TEXT, 'notes.txt', 'image/png'),
      inline(Buffer.from([0, 255, 254, 1]), 'blob.bin', 'text/plain'),
    ];

    /** An image as an image, a text as text, and what no model takes by its name. */
    function expectFiles(told: string): void {
      const { content } = JSON.parse(told) as { content: unknown[] };
      expect(content).to.deep.include(IMAGE);
      const texts = content.flatMap((part) => (part as { text?: string }).text ?? []);
      expect(texts).to.include(`[Attached file notes.txt (text/plain)]\n${TEXT}`);
      expect(texts.join('\n')).to.match(/blob\.bin \(application\/octet-stream, 4 bytes\)/);
    }

    it('by what they are, not by what they are said to be; and again in the next turn’s history', async () => {
      const first = unique('with-files');
      const turn = await chat.turn(first, { attachments: files() });
      expectFiles(await toldWith(first));
      const second = unique('next');
      await chat.turn(second, { sessionId: turn.sessionId, main: 1 });
      const { body } = await cluster.model.request(second);
      expectFiles(JSON.stringify(body.messages?.find((one) => JSON.stringify(one).includes(first))));
    });

    it('after an edit and a move of the pending message', async () => {
      const { held, sessionId } = await busySession();
      const before = await chat.accept('unedited', { sessionId, attachments: files() });
      const other = await chat.accept('the other', { sessionId });
      const queue = new QueueClient(chat, sessionId, 1);
      const edited = unique('edited');
      expect((await queue.edit(before.queueId, edited)).status).to.equal(200);
      const order = await queue.movable();
      expect((await queue.reorder(other.queueId, before.queueId, order)).status).to.equal(200);
      held.open();
      await chat.settled(sessionId, 3);
      expectFiles(await toldWith(edited));
      expect(JSON.stringify(cluster.model.requests)).not.to.contain('unedited');
    });

    it('after a steer, between the assistant’s segments', async () => {
      const { held, sessionId, executionId } = await busySession();
      const marker = unique('steered');
      const { queueId } = await chat.accept(marker, { sessionId, attachments: files() });
      expect((await new QueueClient(chat, sessionId).steer(queueId, executionId)).status).to.equal(200);
      held.open();
      await chat.settled(sessionId);
      expectFiles(await toldWith(marker));
      const { messages } = await chat.transcript(sessionId);
      expect(messages.map((message) => message.role)).to.deep.equal(['user', 'assistant', 'user', 'assistant']);
      expect(messages[2]?.content.filter((part) => part.type === 'file')).to.have.length(3);
    });
  });

  describe('sent first, and then named', () => {
    const sendFirst = async (bytes = TEXT) => (await upload(chat, bytes)).json<Sent>();
    const named = (...ids: string[]) => ids.map((attachmentId) => ({ attachmentId }));

    it('is stored, described and used by a message', async () => {
      const response = await upload(chat, PNG, { disposition: 'filename="dot.png"', mimeType: 'image/png' });
      expect(response.status, response.text).to.equal(201);
      const sent = response.json<Sent & Record<string, unknown>>();
      expect(sent).to.include({ fileName: 'dot.png', mimeType: 'image/png', sizeBytes: PNG.length });
      expect((await download(chat, sent.attachmentId, 1)).bytes).to.deep.equal(PNG);
      const turn = await chat.turn('This one', { attachments: named(sent.attachmentId), main: 1 });
      const { messages } = await chat.transcript(turn.sessionId);
      expect(messages[0]?.content.at(-1)).to.deep.equal({ type: 'file', ...sent });
    });

    it('stands among those that come with the message, in the order of the request', async () => {
      const [one, two] = [await sendFirst(), await sendFirst()];
      const attachments = [
        inline(TEXT, 'a'),
        ...named(two.attachmentId),
        inline(TEXT, 'b'),
        ...named(one.attachmentId),
      ];
      const turn = await chat.turn('In this order', { attachments });
      const ids = startedWith(turn).map((file) => file.attachmentId);
      expect([ids[1], ids[3]]).to.deep.equal([two.attachmentId, one.attachmentId]);
      expect(startedWith(turn).map((file) => file.fileName)).to.deep.equal(['a', 'notes.txt', 'b', 'notes.txt']);
    });

    it('404 for one that is not there, of another user or agent, or used already, 400 for one named twice; and nothing is accepted', async () => {
      const sent = await sendFirst();
      const message = { message: 'x', attachments: named(sent.attachmentId) };
      const other = await cluster.newUser();
      await cluster.addMember(chat.user, chat.projectId, other, 'user');
      expectProblem(await chat.as(other).post(message), 404, 'not_found');
      expectProblem(await download(chat.as(other), sent.attachmentId), 404, 'not_found');
      const sibling = await cluster.newAgent(chat.user, chat.projectId);
      const path = `/projects/${chat.projectId}/agents/v2/${sibling}/chat`;
      expectProblem(await chat.http().post(path, message), 404, 'not_found');
      expectProblem(await chat.http().get(`${path}/attachments/${sent.attachmentId}`), 404, 'not_found');
      expectProblem(await chat.post({ message: 'x', attachments: named(randomUUID()) }), 404, 'not_found');
      expectProblem(await download(chat, 'no-uuid'), 404, 'not_found');
      const twice = { message: 'x', attachments: named(sent.attachmentId, sent.attachmentId) };
      expectProblem(await chat.post(twice), 400, 'invalid_request');
      const { sessionId } = await chat.accept('mine', { attachments: named(sent.attachmentId) });
      expectProblem(await chat.post({ ...message, sessionId }), 404, 'not_found');
      expect(await chat.settled(sessionId)).to.have.length(1);
    });

    it('goes to one of two messages that name it at once, whole', async () => {
      for (let round = 0; round < 10; round += 1) {
        const ids = [(await sendFirst()).attachmentId, (await sendFirst()).attachmentId];
        const answers = await Promise.all(
          [ids, [...ids].reverse()].map((order, main) =>
            chat.post({ message: `race ${main}`, attachments: named(...order) }, { main, headers: JSON_ONLY }),
          ),
        );
        expect(answers.map((answer) => answer.status).sort()).to.deep.equal([202, 404]);
        const winner = answers.find((answer) => answer.status === 202)?.json<{ messageId: string }>();
        const rows = await cluster.db.query('select message_id from attachments where id = any($1)', [ids]);
        expect(rows).to.deep.equal([{ message_id: winner?.messageId }, { message_id: winner?.messageId }]);
      }
    });

    it('needs agent:execute', async () => {
      const viewer = await cluster.newUser();
      await cluster.addMember(chat.user, chat.projectId, viewer, 'viewer');
      expectProblem(await upload(chat.as(viewer), TEXT), 403, 'forbidden');
    });
  });

  describe('what is refused', () => {
    it('400 for an empty file, one that is no base64, and one more than MAX_ATTACHMENTS', async () => {
      const wrong = [
        [inline(Buffer.alloc(0))],
        [{ fileName: 'x', mimeType: 'text/plain', data: '***' }],
        [{ fileName: 'x', data: 'eA==' }],
        [{ fileName: 'x\n', mimeType: 'text/plain', data: 'eA==' }],
        [{ fileName: '', mimeType: 'text/plain', data: 'eA==' }],
        [{ fileName: 'x', mimeType: 'text', data: 'eA==' }],
        Array.from({ length: 5 }, () => inline(TEXT)),
      ];
      for (const files of wrong) {
        expectProblem(await chat.post({ message: 'x', attachments: files }), 400, 'invalid_request');
      }
    });

    it('413 for one that is larger than MAX_ATTACHMENT_BYTES; exactly as large is fine', async () => {
      const tooLarge = Buffer.alloc(100_001, 'x');
      expectProblem(await chat.post({ message: 'x', attachments: [inline(tooLarge)] }), 413, 'payload_too_large');
      expectProblem(await upload(chat, tooLarge), 413, 'payload_too_large');
      const largest = Buffer.alloc(100_000, 'x');
      await chat.accept('x', { attachments: [inline(largest)] });
      expect((await upload(chat, largest)).status).to.equal(201);
    });

    it('400 for a form with an empty file or none, 415 for what is no form', async () => {
      expectProblem(await upload(chat, Buffer.alloc(0)), 400, 'invalid_request');
      expectProblem(await chat.http().post(chat.path('/attachments'), {}), 415, 'unsupported_media_type');
      const headers = { 'content-type': 'multipart/form-data; boundary=x' };
      const response = await chat.http().post(chat.path('/attachments'), Buffer.from('--x--\r\n'), { headers });
      expectProblem(response, 400, 'invalid_request');
    });
  });

  it('go with their queue item', async () => {
    const { held, sessionId } = await busySession();
    const { queueId } = await chat.accept('doomed', { sessionId, attachments: [inline(TEXT)] });
    const queue = new QueueClient(chat, sessionId);
    const [item] = (await chat.queue(sessionId)).items as unknown as { attachments: Sent[] }[];
    const id = String(item?.attachments[0]?.attachmentId);
    expect((await download(chat, id)).bytes).to.deep.equal(TEXT);
    expect((await queue.remove(queueId)).status).to.equal(200);
    expectProblem(await download(chat, id), 404, 'not_found');
    held.open();
    await chat.settled(sessionId);
  });

  it('go with their session', async () => {
    const turn = await chat.turn('With a file', { attachments: [inline(TEXT)] });
    await chat.http().expect(200, chat.path(`/${turn.sessionId}`), { method: 'DELETE' });
    expectProblem(await download(chat, String(startedWith(turn)[0]?.attachmentId)), 404, 'not_found');
  });
}

const JSON_ONLY = { accept: 'application/json' };
