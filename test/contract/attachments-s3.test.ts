import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { download, inline, type Sent, startedWith, TEXT, upload } from '../support/attachments.js';
import type { Chat } from '../support/chat.js';
import { eventually } from '../support/deadline.js';
import { unique } from '../support/environment.js';
import { expectProblem } from '../support/problem.js';
import { ProductProcess } from '../support/processes.js';
import { S3Server } from '../support/s3-server.js';
import { useCluster } from '../support/suite.js';

describe('an S3 store (section 1, ATTACHMENTS_URL)', () => {
  const store = new S3Server();
  const env: Record<string, string> = {};
  before(async () => {
    await store.start();
    Object.assign(env, store.environment());
  });
  after(() => store.stop());
  const cluster = useCluster({ env });
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat();
  });
  beforeEach(() => store.heal());

  const marked = (text: string) => [inline(Buffer.from(text), 'a.txt')];
  const holds = (text: string) => [...store.objects.values()].some(({ bytes }) => bytes.includes(text));
  const messagesWith = (text: string) => cluster.db.query('select id from messages where text = $1', [text]);
  const makeDue = () => cluster.db.query('update loose_objects set due_at = now()');

  /** A worker cleans up when it starts; one more is started, and stopped once everything loose is gone. */
  async function cleanUp(): Promise<void> {
    await makeDue();
    const named = await cluster.db.query<{ count: number }>(
      'select count(*)::int as count from attachments where object_key is not null',
    );
    const worker = await cluster.startWorker();
    await store.holds(named[0]?.count ?? 0);
    await worker.stop();
  }

  it('holds the bytes, and Postgres none of them', async () => {
    const secret = unique('bytes');
    await chat.turn('With a file', { attachments: marked(secret) });
    expect(holds(secret)).to.equal(true);
    expect((await upload(chat, Buffer.from(secret))).status).to.equal(201);
    const rows = await cluster.db.query('select id from attachments where data is not null');
    expect(rows).to.deep.equal([]);
  });

  it('503 where an upload fails: no message, no attachment, and in the end no object', async () => {
    for (const fault of ['500', 'cut', 'late-500', '403'] as const) {
      const text = unique(`upload-${fault}`);
      store.fail('PUT', fault);
      const message = { message: text, attachments: [...marked(text), ...marked(text)] };
      const refused = expectProblem(await chat.post(message), 503, 'unavailable');
      expect(JSON.stringify(refused)).not.to.contain('127.0.0.1');
      expectProblem(await upload(chat, Buffer.from(text), { main: 1 }), 503, 'unavailable');
      store.heal();
      expect(await messagesWith(text)).to.deep.equal([]);
      expect(holds(text)).to.equal(fault === 'late-500');
    }
    const loose = await cluster.db.query('select key from loose_objects');
    expect(loose).to.have.length(12);
    await cleanUp();
    expect(await cluster.db.query('select key from loose_objects')).to.deep.equal([]);
  });

  it('a main that dies in the middle leaves no object either', async () => {
    const text = unique('killed');
    store.fail('PUT', 'late-never');
    const main = await cluster.startMain();
    const sent = chat.post({ message: text, attachments: marked(text) }, { main: cluster.mains.length - 1 });
    const broken = sent.then(
      () => 'answered',
      () => 'broken',
    );
    await eventually('the upload has not arrived', async () => holds(text));
    await main.kill();
    expect(await broken).to.equal('broken');
    expect(await cluster.db.query('select state from loose_objects')).to.deep.equal([{ state: 'uploading' }]);
    store.heal();
    await cleanUp();
    expect(holds(text)).to.equal(false);
    expect(await messagesWith(text)).to.deep.equal([]);
  });

  it('one upload of several that fails takes the others with it', async () => {
    const text = unique('several');
    store.fail('PUT', '403', 1);
    const message = { message: text, attachments: [...marked(text), ...marked(text), ...marked(text)] };
    expectProblem(await chat.post(message), 503, 'unavailable');
    expect(holds(text)).to.equal(true);
    await cleanUp();
    expect(holds(text)).to.equal(false);
  });

  it('is written before the message is accepted: a stream begins when the bytes are there', async () => {
    const text = unique('order');
    const stream = await chat.send(text, { attachments: marked(text) });
    await stream.until('message-queued');
    expect(holds(text)).to.equal(true);
    await stream.all();
  });

  it('503 where a download fails, and the bytes again afterwards', async () => {
    const sent = (await upload(chat, TEXT)).json<Sent>();
    for (const fault of ['500', 'cut', 'cut-in-body', '403'] as const) {
      store.fail('GET', fault);
      const response = await download(chat, sent.attachmentId, 1);
      expectProblem(response, 503, 'unavailable');
      expect(response.headers['retry-after']).to.match(/^\d+$/);
      expect(response.headers['content-disposition']).to.equal(undefined);
      store.heal();
    }
    expect((await download(chat, sent.attachmentId)).bytes).to.deep.equal(TEXT);
  });

  it('a request that is refused for another reason leaves no object', async () => {
    const text = unique('refused');
    const attachments = [...marked(text), { attachmentId: randomUUID() }];
    expectProblem(await chat.post({ message: text, attachments }), 404, 'not_found');
    expect(holds(text)).to.equal(true);
    await cleanUp();
    expect(holds(text)).to.equal(false);
  });

  it('a request that is repeated with its key leaves one object', async () => {
    const text = unique('repeated');
    const headers = { 'idempotency-key': unique('key') };
    const answers = await Promise.all(
      [0, 1, 0, 1].map((main) => chat.accept(text, { main, headers, attachments: marked(text) })),
    );
    expect(new Set(answers.map((answer) => answer.messageId)).size).to.equal(1);
    await cleanUp();
    expect([...store.objects.values()].filter(({ bytes }) => bytes.includes(text))).to.have.length(1);
  });

  it('forgets what was deleted with its message, its session, or after an hour without a message', async () => {
    const text = unique('deleted');
    const turn = await chat.turn(text, { attachments: marked(text) });
    const orphan = (await upload(chat, Buffer.from(text))).json<Sent>();
    await cluster.db.query(`update attachments set created_at = now() - interval '61 minutes' where id = $1`, [
      orphan.attachmentId,
    ]);
    await chat.http().expect(200, chat.path(`/${turn.sessionId}`), { method: 'DELETE' });
    expectProblem(await download(chat, String(startedWith(turn)[0]?.attachmentId)), 404, 'not_found');
    const others = [...store.objects.values()].filter(({ bytes }) => !bytes.includes(text)).length;
    const worker = await cluster.startWorker();
    await store.holds(others);
    await worker.stop();
    expect(holds(text)).to.equal(false);
    expectProblem(await download(chat, orphan.attachmentId), 404, 'not_found');
  });

  it('a turn waits for a store that is away for a moment', async () => {
    const marker = unique('blip');
    store.fail('GET', '500', 3);
    const turn = await chat.turn(marker, { attachments: marked('the content') });
    expect(turn.status).to.equal('success');
    const { body } = await cluster.model.request(marker);
    expect(JSON.stringify(body.messages)).to.contain('the content');
  });

  it('a turn that cannot read its file ends with words, without a request to the model; Stop does not wait', async function () {
    this.timeout(40_000);
    const marker = unique('outage');
    store.fail('GET', '500');
    const turn = await chat.turn(marker, { attachments: marked('x') });
    expect(turn.status).to.equal('error');
    expect(turn.error?.code).to.equal('internal');
    expect(turn.error?.message).to.match(/store of attachments/);
    expect(cluster.model.requestsFor(marker)).to.deep.equal([]);
    const stream = await chat.send(unique('stopped'), { sessionId: turn.sessionId });
    const { executionId } = (await stream.until('execution-started')).data;
    await chat.stop(turn.sessionId, String(executionId));
    const done = await stream.until('done', 3_000);
    expect(done.data.status).to.equal('cancelled');
  });

  it('a file that somebody removed from the store is named to the model, and is 404', async () => {
    const marker = unique('removed');
    const turn = await chat.turn('first', { attachments: marked('gone soon') });
    store.objects.clear();
    const next = await chat.turn(marker, { sessionId: turn.sessionId });
    expect(next.status).to.equal('success');
    const { body } = await cluster.model.request(marker);
    expect(JSON.stringify(body.messages)).to.match(/a\.txt \(text\/plain, 9 bytes\); its content is gone/);
    expectProblem(await download(chat, String(startedWith(turn)[0]?.attachmentId)), 404, 'not_found');
  });

  it('is asked for nothing by a message without attachments', async () => {
    store.requests.length = 0;
    await chat.turn(unique('plain'));
    expect(store.requests).to.deep.equal([]);
  });

  it('stops a start with one line where its credentials are missing', async () => {
    for (const kind of ['main', 'worker'] as const) {
      const process = new ProductProcess(kind, `${kind} without a key`, {
        ...cluster.environment(),
        AWS_SECRET_ACCESS_KEY: '',
      });
      const exit = await Promise.race([process.exit, process.listening().catch(() => process.exit)]);
      if (process.alive) await process.kill();
      expect(exit).to.deep.equal({ code: 1, signal: null });
      expect(process.output).to.deep.equal(['AWS_SECRET_ACCESS_KEY is missing: ATTACHMENTS_URL needs it']);
    }
  });

  it('tells its secrets to no log', () => {
    const logs = [...cluster.mains, ...cluster.workers].flatMap((one) => one.output).join('\n');
    expect(logs).not.to.contain(store.identity.secretAccessKey);
    expect(logs).not.to.contain(store.identity.accessKeyId);
  });
});
