import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import type { HttpResponse } from '../support/http.js';
import { expectProblem } from '../support/problem.js';
import { useCluster } from '../support/suite.js';

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const TEXT = Buffer.from('Zwölf Boxkämpfer\n');

interface Sent {
  readonly attachmentId: string;
  readonly fileName: string;
  readonly mimeType: string;
  readonly sizeBytes: number;
}

describe('attachments (sections 4 and 5)', () => {
  const cluster = useCluster({ env: { MAX_ATTACHMENT_BYTES: '100000' } });
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat();
  });
  const inline = (bytes: Buffer, fileName = 'file.txt', mimeType = 'text/plain') => ({
    fileName,
    mimeType,
    data: bytes.toString('base64'),
  });
  const fetchBytes = (attachmentId: string, main = 0) => chat.http(main).get(chat.path(`/attachments/${attachmentId}`));

  function upload(bytes: Buffer, fileName = 'notes.txt', mimeType = 'text/plain', main = 0): Promise<HttpResponse> {
    const boundary = `b${randomUUID()}`;
    const head =
      `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${fileName}"\r\n` +
      `Content-Type: ${mimeType}\r\n\r\n`;
    const body = Buffer.concat([Buffer.from(head), bytes, Buffer.from(`\r\n--${boundary}--\r\n`)]);
    const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` };
    return chat.http(main).post(chat.path('/attachments'), body, { headers });
  }

  it('sent with a message, are part of it: in the start event, the transcript, and as bytes', async () => {
    const attachments = [inline(TEXT, 'ü 😀.txt'), inline(PNG, 'dot.png', 'image/png')];
    const turn = await chat.turn('Look at these', { attachments });
    const { messages } = await chat.transcript(turn.sessionId, 1);
    const files = messages[0]?.content.filter((part) => part.type === 'file') ?? [];
    expect(files.map(({ fileName, mimeType, sizeBytes }) => ({ fileName, mimeType, sizeBytes }))).to.deep.equal([
      { fileName: 'ü 😀.txt', mimeType: 'text/plain', sizeBytes: TEXT.length },
      { fileName: 'dot.png', mimeType: 'image/png', sizeBytes: PNG.length },
    ]);
    const started = turn.of('execution-started')[0]?.message as { attachments: Sent[] };
    const ids = files.map((file) => String(file.attachmentId));
    expect(started.attachments.map((one) => one.attachmentId)).to.deep.equal(ids);
    const bytes = await Promise.all(ids.map((id) => fetchBytes(id, 1)));
    expect(bytes.map((one) => one.bytes)).to.deep.equal([TEXT, PNG]);
  });

  it('may stand alone, without a text', async () => {
    const turn = await chat.turn('', { attachments: [inline(TEXT)] });
    const { messages } = await chat.transcript(turn.sessionId);
    expect(messages[0]?.content.map((part) => part.type)).to.deep.equal(['file']);
    expect((await chat.turn('And now?', { sessionId: turn.sessionId })).status).to.equal('success');
  });

  it('reach the model: the text of a file is in the request', async () => {
    const marker = unique('file');
    await chat.turn(marker, { attachments: [inline(TEXT), inline(PNG, 'dot.png', 'image/png')] });
    const { body } = await cluster.model.request(marker);
    const message = JSON.stringify(body.messages?.at(-1));
    const known = [TEXT.toString().trim(), TEXT.toString('base64')];
    expect(
      known.some((one) => message.includes(one)),
      message.slice(0, 500),
    ).to.equal(true);
    expect(message).to.contain(PNG.toString('base64'));
  });

  it('are served safely: nosniff, inline for images that are ones, to be saved otherwise', async () => {
    const html = Buffer.from('<script>alert(1)</script>');
    const attachments = [
      inline(PNG, 'dot.png', 'image/png'),
      inline(html, 'page.html', 'text/html'),
      inline(html, 'fake.png', 'image/png'),
      inline(Buffer.from([0, 255, 254, 1]), 'blob.bin', 'image/svg+xml'),
    ];
    const turn = await chat.turn('Safe?', { attachments });
    const started = turn.of('execution-started')[0]?.message as { attachments: Sent[] };
    const served = await Promise.all(started.attachments.map((one) => fetchBytes(one.attachmentId)));
    const types = served.map((one) => one.headers['content-type']?.split(';')[0]);
    expect(types).to.deep.equal(['image/png', 'text/plain', 'text/plain', 'application/octet-stream']);
    for (const one of served) expect(one.headers['x-content-type-options']).to.equal('nosniff');
    const dispositions = served.map((one) => one.headers['content-disposition']?.startsWith('attachment') === true);
    expect(dispositions).to.deep.equal([false, true, true, true]);
  });

  describe('sent first, and then named', () => {
    it('is stored, described and used by a message', async () => {
      const response = await upload(PNG, 'dot.png', 'image/png');
      expect(response.status, response.text).to.equal(201);
      const sent = response.json<Sent & Record<string, unknown>>();
      expect(sent).to.include({ fileName: 'dot.png', mimeType: 'image/png', sizeBytes: PNG.length });
      const turn = await chat.turn('This one', { attachments: [{ attachmentId: sent.attachmentId }], main: 1 });
      const { messages } = await chat.transcript(turn.sessionId);
      expect(messages[0]?.content.at(-1)).to.deep.equal({ type: 'file', ...sent });
    });

    it('404 for one that is not there, or of another user', async () => {
      const sent = (await upload(TEXT)).json<Sent>();
      const other = await cluster.newUser();
      await cluster.addMember(chat.user, chat.projectId, other, 'user');
      const theirs = { message: 'x', attachments: [{ attachmentId: sent.attachmentId }] };
      expectProblem(await chat.as(other).post(theirs), 404, 'not_found');
      expectProblem(await other.on().get(chat.path(`/attachments/${sent.attachmentId}`)), 404, 'not_found');
      const unknown = { message: 'x', attachments: [{ attachmentId: randomUUID() }] };
      expectProblem(await chat.post(unknown), 404, 'not_found');
    });

    it('400 for an empty file or none, 413 for one too large, 415 for what is no form', async () => {
      expectProblem(await upload(Buffer.alloc(0)), 400, 'invalid_request');
      expectProblem(await upload(Buffer.alloc(100_001, 'x')), 413, 'payload_too_large');
      expectProblem(await chat.http().post(chat.path('/attachments'), {}), 415, 'unsupported_media_type');
      const headers = { 'content-type': 'multipart/form-data; boundary=x' };
      const response = await chat.http().post(chat.path('/attachments'), Buffer.from('--x--\r\n'), { headers });
      expectProblem(response, 400, 'invalid_request');
    });

    it('needs agent:execute', async () => {
      const viewer = await cluster.newUser();
      await cluster.addMember(chat.user, chat.projectId, viewer, 'viewer');
      expectProblem(await chat.as(viewer).http().post(chat.path('/attachments'), {}), 403, 'forbidden');
    });
  });

  describe('what is refused', () => {
    it('400 for an empty file, one that is no base64, and one more than MAX_ATTACHMENTS', async () => {
      const wrong = [
        [inline(Buffer.alloc(0))],
        [{ fileName: 'x', mimeType: 'text/plain', data: '***' }],
        [{ fileName: 'x', data: 'eA==' }],
        Array.from({ length: 11 }, () => inline(TEXT)),
      ];
      for (const attachments of wrong) {
        expectProblem(await chat.post({ message: 'x', attachments }), 400, 'invalid_request');
      }
    });

    it('413 for one that is larger than MAX_ATTACHMENT_BYTES; exactly as large is fine', async () => {
      const tooLarge = [inline(Buffer.alloc(100_001, 'x'))];
      expectProblem(await chat.post({ message: 'x', attachments: tooLarge }), 413, 'payload_too_large');
      await chat.accept('x', { attachments: [inline(Buffer.alloc(100_000, 'x'))] });
    });
  });

  it('go with their session', async () => {
    const turn = await chat.turn('With a file', { attachments: [inline(TEXT)] });
    const started = turn.of('execution-started')[0]?.message as { attachments: Sent[] };
    await chat.http().expect(200, chat.path(`/${turn.sessionId}`), { method: 'DELETE' });
    expectProblem(await fetchBytes(String(started.attachments[0]?.attachmentId)), 404, 'not_found');
  });
});
