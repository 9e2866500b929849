import { randomUUID } from 'node:crypto';
import { expectObjects, giveUpObjects, removeLooseObjects } from '@turnkeep/shared/attachments/loose-objects';
import { readS3Settings } from '@turnkeep/shared/attachments/s3-settings';
import { S3Store } from '@turnkeep/shared/attachments/s3-store';
import { rowsOnly, StoreAway } from '@turnkeep/shared/attachments/store';
import {
  attach,
  type NewAttachment,
  removeOrphans,
  storeAttachment,
  withBytesStored,
} from '@turnkeep/shared/chat/attachments';
import type { SessionRef } from '@turnkeep/shared/chat/refs';
import { ProblemError } from '@turnkeep/shared/contract/problems';
import { Database } from '@turnkeep/shared/db/database';
import { expect } from 'chai';
import { createDatabase, type TestDatabase } from '../../../../test/support/postgres.js';
import { S3Server } from '../../../../test/support/s3-server.js';
import '../../../../test/support/suite.js';

const FILE: NewAttachment = { title: 'a', fileName: 'a.txt', mimeType: 'text/plain', data: Buffer.from('bytes') };

describe('objects that no attachment names', () => {
  const server = new S3Server();
  let test: TestDatabase;
  let db: Database;
  let store: S3Store;
  const owner: SessionRef = {
    projectId: randomUUID(),
    agentId: randomUUID(),
    userId: randomUUID(),
    sessionId: randomUUID(),
  };

  before(async () => {
    await server.start();
    const settings = readS3Settings(server.environment());
    if (settings === null) throw new Error('no settings');
    store = new S3Store(settings, 1_000);
    test = await createDatabase();
    db = new Database(test.url, 5);
    const { projectId, agentId, userId, sessionId } = owner;
    await test.query('insert into users (id, email, name) values ($1, $2, $2)', [userId, 'one@example.org']);
    await test.query(`insert into projects (id, name) values ($1, 'p')`, [projectId]);
    await test.query(`insert into agents (id, project_id, name, config) values ($1, $2, 'a', '{}')`, [
      agentId,
      projectId,
    ]);
    await test.query(`insert into sessions (id, project_id, agent_id, user_id, title) values ($1, $2, $3, $4, 't')`, [
      sessionId,
      projectId,
      agentId,
      userId,
    ]);
  });
  after(async () => {
    await db.stop();
    await test.drop();
    await server.stop();
  });
  beforeEach(async () => {
    server.heal();
    server.objects.clear();
    await test.query('delete from attachments');
    await test.query('delete from loose_objects');
  });

  const newMessage = async () => {
    const id = randomUUID();
    await db.query(`insert into messages (id, session_id, role, text) values ($1, $2, 'user', 'x')`, [
      id,
      owner.sessionId,
    ]);
    return id;
  };
  const send = (messageId: string, files: NewAttachment[] = [FILE]) =>
    withBytesStored(db, store, files, (ready) => db.transaction((tx) => attach(tx, owner, messageId, ready)));
  const loose = () =>
    test.query<{ state: string; late: boolean }>('select state, due_at > now() as late from loose_objects');
  const makeDue = () => test.query(`update loose_objects set due_at = now()`);
  const cleanUp = (count = 100) => removeLooseObjects(db, store, count);

  it('are noted before they are written, and no more once an attachment names them', async () => {
    let during: unknown;
    const messageId = await newMessage();
    await withBytesStored(db, store, [FILE], async (ready) => {
      during = await loose();
      await db.transaction((tx) => attach(tx, owner, messageId, ready));
    });
    expect(during).to.deep.equal([{ state: 'uploading', late: true }]);
    expect(await loose()).to.deep.equal([]);
    await makeDue();
    expect(await cleanUp()).to.deep.equal({ due: 0, gone: 0 });
    expect(server.objects.size).to.equal(1);
    const rows = await test.query('select data, object_key from attachments');
    expect(rows).to.deep.equal([{ data: null, object_key: [...server.objects.keys()][0] }]);
  });

  it('are removed soon where the transaction was refused', async () => {
    const refused = withBytesStored(db, store, [FILE, FILE], async () => {
      throw new ProblemError('queue_full', 'full');
    });
    expect(await refused.catch((error: ProblemError) => error.code)).to.equal('queue_full');
    expect(server.objects.size).to.equal(2);
    expect(await cleanUp()).to.deep.equal({ due: 2, gone: 2 });
    expect(server.objects.size).to.equal(0);
    expect(await loose()).to.deep.equal([]);
  });

  it('are removed, also what came late, where one of several could not be written; the transaction does not run', async () => {
    server.fail('PUT', 'late-500');
    let ran = false;
    const failed = withBytesStored(db, store, [FILE, FILE, FILE], async () => {
      ran = true;
    });
    expect(await failed.catch((error: unknown) => error)).to.be.instanceOf(StoreAway);
    expect(ran).to.equal(false);
    expect(server.objects.size).to.be.above(0);
    const notes = await loose();
    expect(notes).to.have.length(3);
    expect(notes.every((note) => note.state === 'doomed' && note.late)).to.equal(true);
    expect(await cleanUp()).to.deep.equal({ due: 0, gone: 0 });
    await makeDue();
    expect(await cleanUp()).to.deep.equal({ due: 3, gone: 3 });
    expect(server.objects.size).to.equal(0);
  });

  it('are removed after an hour where the process died before its transaction', async () => {
    const key = store.keyFor(randomUUID());
    await expectObjects(db, [key]);
    await store.put(key, FILE.data);
    expect(await cleanUp()).to.deep.equal({ due: 0, gone: 0 });
    const [note] = await test.query<{ left: number }>(
      'select extract(epoch from due_at - now())::int as left from loose_objects',
    );
    expect(note?.left).to.be.within(3_500, 3_600);
    await makeDue();
    expect(await cleanUp()).to.deep.equal({ due: 1, gone: 1 });
    expect(server.objects.size).to.equal(0);
  });

  it('that are being removed go to no attachment any more: who comes that late is refused', async () => {
    const messageId = await newMessage();
    const late = withBytesStored(db, store, [FILE], async (ready) => {
      await makeDue();
      await cleanUp();
      await db.transaction((tx) => attach(tx, owner, messageId, ready));
    });
    expect(await late.catch((error: unknown) => error)).to.be.instanceOf(StoreAway);
    expect(await test.query('select id from attachments')).to.deep.equal([]);
    expect(server.objects.size).to.equal(0);
  });

  it('that an attachment names are not given up by who believes that it failed', async () => {
    await send(await newMessage());
    await giveUpObjects(db, [...server.objects.keys()]);
    await giveUpObjects(db, [...server.objects.keys()], true);
    await makeDue();
    expect(await cleanUp()).to.deep.equal({ due: 0, gone: 0 });
    expect(server.objects.size).to.equal(1);
  });

  const ways: Record<string, () => Promise<unknown>> = {
    'its message': () => test.query('delete from messages where session_id = $1', [owner.sessionId]),
    'an hour without a message': async () => {
      await test.query(`update attachments set message_id = null, created_at = now() - interval '61 minutes'`);
      await removeOrphans(db, 100);
    },
  };
  for (const [what, remove] of Object.entries(ways)) {
    it(`are removed when an attachment goes with ${what}`, async () => {
      await send(await newMessage(), [FILE, FILE, FILE]);
      expect(server.objects.size).to.equal(3);
      await remove();
      expect(await test.query('select id from attachments')).to.deep.equal([]);
      expect(await cleanUp(2)).to.deep.equal({ due: 2, gone: 2 });
      expect(await cleanUp(2)).to.deep.equal({ due: 1, gone: 1 });
      expect(server.objects.size).to.equal(0);
      expect(await loose()).to.deep.equal([]);
    });
  }

  it('stay noted while a deletion is not committed, and while the store is away', async () => {
    await send(await newMessage());
    const rolledBack = db.transaction(async (tx) => {
      await tx.query('delete from attachments');
      expect(await cleanUp()).to.deep.equal({ due: 0, gone: 0 });
      throw new Error('back');
    });
    expect(await rolledBack.catch((error: Error) => error.message)).to.equal('back');
    expect(await loose()).to.deep.equal([]);
    await test.query('delete from attachments');
    server.fail('DELETE', '500');
    expect(await cleanUp()).to.deep.equal({ due: 1, gone: 0 });
    expect(await cleanUp()).to.deep.equal({ due: 0, gone: 0 });
    expect(await loose()).to.deep.equal([{ state: 'doomed', late: true }]);
    server.heal();
    await makeDue();
    expect(await cleanUp()).to.deep.equal({ due: 1, gone: 1 });
    expect(server.objects.size).to.equal(0);
  });

  it('are shared among those who remove: none twice', async () => {
    await send(
      await newMessage(),
      Array.from({ length: 12 }, () => FILE),
    );
    await test.query('delete from attachments');
    server.requests.length = 0;
    const rounds = await Promise.all([cleanUp(5), cleanUp(5), cleanUp(5)]);
    expect(rounds.reduce((sum, { gone }) => sum + gone, 0)).to.equal(12);
    const deleted = server.requests.filter((request) => request.startsWith('DELETE'));
    expect(new Set(deleted).size).to.equal(12);
    expect(deleted).to.have.length(12);
  });

  it('are none with Postgres as the store: one statement, and no note', async () => {
    let statements = 0;
    const counting = {
      query: <Row>(sql: string, values?: readonly unknown[]) => {
        statements += 1;
        return db.query<Row>(sql, values);
      },
    };
    await storeAttachment(counting, rowsOnly, owner, FILE);
    expect(statements).to.equal(1);
    await withBytesStored(counting, store, [{ title: '', attachmentId: randomUUID() }], async () => {});
    expect(statements).to.equal(1);
    expect(await loose()).to.deep.equal([]);
    const rows = await test.query('select data, object_key from attachments');
    expect(rows).to.deep.equal([{ data: FILE.data, object_key: null }]);
  });

  it('an attachment that a message takes at this moment is no orphan', async () => {
    const { attachmentId } = await storeAttachment(db, store, owner, FILE);
    await test.query(`update attachments set created_at = now() - interval '61 minutes'`);
    const messageId = await newMessage();
    await db.transaction(async (tx) => {
      await attach(tx, owner, messageId, [{ title: '', attachmentId }]);
      await removeOrphans(db, 100);
    });
    await removeOrphans(db, 100);
    expect(await test.query('select message_id from attachments')).to.deep.equal([{ message_id: messageId }]);
  });
});
