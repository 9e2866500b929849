import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { Cluster } from '../support/cluster.js';
import { REPOSITORY } from '../support/environment.js';
import { createDatabase, createEmptyDatabase } from '../support/postgres.js';
import { type Kind, ProductProcess } from '../support/processes.js';

describe('configuration (section 1)', function () {
  this.timeout(60_000);
  const cluster = new Cluster({ mains: 0, workers: 0 });
  before(() => cluster.start());
  after(() => cluster.stop());

  /** Starts a process that must refuse; answers with what it said. */
  async function refused(kind: Kind, env: Record<string, string | undefined>): Promise<string> {
    const merged = { ...cluster.environment(), ...env };
    const given = Object.entries(merged).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const process = new ProductProcess(kind, `a misconfigured ${kind}`, Object.fromEntries(given));
    const exit = await Promise.race([
      process.exit,
      process.listening().then(
        () => undefined,
        () => process.exit,
      ),
    ]);
    if (exit === undefined) await process.kill();
    expect(exit?.code, `${kind} with ${JSON.stringify(env)} started:\n${process.tail()}`).to.be.above(0);
    return process.output.join('\n');
  }

  const wrong: Record<string, Record<string, string | undefined>> = {
    'DATABASE_URL, missing': { DATABASE_URL: undefined },
    'REDIS_URL, missing': { REDIS_URL: undefined },
    'REDIS_URL, malformed': { REDIS_URL: 'not a url' },
    'ENCRYPTION_KEY, too short': { ENCRYPTION_KEY: 'c2hvcnQ=' },
    'LEASE_MS, no number': { LEASE_MS: 'soon' },
    'AGENTS_ENABLED, neither true nor false': { AGENTS_ENABLED: 'maybe' },
    'MAX_PENDING, negative': { MAX_PENDING: '-1' },
  };
  for (const [what, env] of Object.entries(wrong)) {
    it(`refuses to start with one line that names ${what}`, async () => {
      const [name = ''] = Object.keys(env);
      for (const output of await Promise.all([refused('main', env), refused('worker', env)])) {
        const lines = output.split('\n').filter((line) => line.includes(name));
        expect(lines, output).to.have.length(1);
        expect(output).not.to.match(/^\s+at /m);
      }
    });
  }

  it('never prints the value of a secret that it complains about', async () => {
    const output = await refused('main', { ENCRYPTION_KEY: 'my-very-secret-key' });
    expect(output).not.to.contain('my-very-secret-key');
  });

  it('refuses a schema that a later release has made unfit for it', async () => {
    const future = await createDatabase();
    try {
      await future.query('update schema_version set version = version + 1000, oldest_compatible = version + 1000');
      expect(await refused('worker', { DATABASE_URL: future.url })).to.match(/schema/i);
    } finally {
      await future.drop();
    }
  });

  it('refuses a database without a schema', async () => {
    const empty = await createEmptyDatabase();
    try {
      const env = { DATABASE_URL: empty.url };
      for (const output of await Promise.all([refused('main', env), refused('worker', env)])) {
        expect(output).to.match(/schema|migrat/i);
      }
    } finally {
      await empty.drop();
    }
  });

  it('migrates an empty database, again without effect, and four times at once', async () => {
    const empty = await createEmptyDatabase();
    const migrate = () =>
      promisify(execFile)(process.execPath, ['packages/shared/dist/db/migrate.js'], {
        cwd: REPOSITORY,
        env: { PATH: process.env.PATH, DATABASE_URL: empty.url },
      });
    try {
      await Promise.all([migrate(), migrate(), migrate(), migrate()]);
      await migrate();
      const main = new ProductProcess('main', 'main', { ...cluster.environment(), DATABASE_URL: empty.url });
      await main.listening();
      await main.stop();
    } finally {
      await empty.drop();
    }
  });
});
