import { Database } from '@turnkeep/shared/db/database';
import { expect } from 'chai';
import { createDatabase, type TestDatabase } from '../../../../test/support/postgres.js';
import '../../../../test/support/suite.js';

const READ = 'select * from things where id = $1';
const PREPARED = 'select name from pg_prepared_statements where statement = $1';

describe('prepared statements', () => {
  let test: TestDatabase;
  let db: Database;

  beforeEach(async () => {
    test = await createDatabase();
    // One connection, so that what one statement leaves there the next one meets.
    db = new Database(test.url, 1);
    await test.query('create table things (id int primary key, name text)');
    await test.query(`insert into things values (1, 'first')`);
  });
  afterEach(async () => {
    await db.stop();
    await test.drop();
  });

  it('are planned once a connection', async () => {
    for (let i = 0; i < 3; i += 1) expect(await db.query(READ, [1])).to.deep.equal([{ id: 1, name: 'first' }]);
    expect(await db.query(PREPARED, [READ])).to.have.length(1);
  });

  it('go through after a migration that changed what they answer, alone and in a transaction', async () => {
    await db.query(READ, [1]);
    await test.query('alter table things add column added int');
    expect(await db.query(READ, [1])).to.deep.equal([{ id: 1, name: 'first', added: null }]);
    await test.query('alter table things drop column added');
    const rows = await db.transaction((tx) => tx.query(READ, [1]));
    expect(rows).to.deep.equal([{ id: 1, name: 'first' }]);
    expect(await db.query(PREPARED, [READ]), 'still prepared').to.have.length.above(0);
  });

  it('are given up behind a pooler that hands out connections without them', async () => {
    await db.query(READ, [1]);
    await db.query('deallocate all');
    const update = (tx: Pick<Database, 'query'>) =>
      tx.query('update things set name = name || $1 returning name', ['!']);
    const rows = await db.transaction(async (tx) => [await update(tx), await tx.query(READ, [1])]);
    expect(rows, 'done once').to.deep.equal([[{ name: 'first!' }], [{ id: 1, name: 'first!' }]]);
    expect(await db.query(PREPARED, [READ])).to.deep.equal([]);
  });

  it('are given up where a connection has one of that name from somebody else', async () => {
    const other = new Database(test.url, 1);
    await other.query(READ, [1]);
    const [{ name }] = (await other.query<{ name: string }>(PREPARED, [READ])) as [{ name: string }];
    await other.stop();
    await db.query(`prepare "${name}" as select * from things where id = $1`);
    expect(await db.query(READ, [1])).to.deep.equal([{ id: 1, name: 'first' }]);
  });
});
