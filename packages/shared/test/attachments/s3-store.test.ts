import { randomBytes } from 'node:crypto';
import { readS3Settings, type S3Settings } from '@turnkeep/shared/attachments/s3-settings';
import { S3Store } from '@turnkeep/shared/attachments/s3-store';
import { StoreAway } from '@turnkeep/shared/attachments/store';
import { expect } from 'chai';
import { S3Server } from '../../../../test/support/s3-server.js';

const BYTES = Buffer.from('Zwölf Boxkämpfer\n');

describe('the S3 store', () => {
  const server = new S3Server();
  before(() => server.start());
  after(() => server.stop());
  beforeEach(() => {
    server.heal();
    server.requests.length = 0;
    server.refused.length = 0;
  });

  function settings(changed: Partial<S3Settings> = {}): S3Settings {
    const read = readS3Settings(server.environment());
    if (read === null) throw new Error('no settings');
    return { ...read, ...changed };
  }
  const newStore = (changed: Partial<S3Settings> = {}, requestMs?: number) => new S3Store(settings(changed), requestMs);

  /** Runs something that must find the store away; answers with what the log would say of it. */
  async function away(run: Promise<unknown>): Promise<string> {
    const error = await run.then(
      () => expect.fail('it succeeded'),
      (reason: unknown) => reason,
    );
    expect(error).to.be.instanceOf(StoreAway);
    return String((error as StoreAway).cause);
  }

  it('gives back the bytes that it was given, whatever they are', async () => {
    const store = newStore();
    for (const bytes of [BYTES, Buffer.of(0), randomBytes(3_000_000), Buffer.from('a pool').subarray(2, 5)]) {
      const key = store.keyFor(`id-${bytes.length}`);
      await store.put(key, bytes);
      expect((await store.get(key))?.equals(bytes)).to.equal(true);
    }
    expect(server.refused).to.deep.equal([]);
  });

  it('puts objects under the prefix, as bytes that no browser runs', async () => {
    const store = newStore();
    const key = store.keyFor('page');
    await store.put(key, Buffer.from('<script>alert(1)</script>'));
    expect(key).to.equal('turnkeep/test/page');
    expect(server.objects.get(key)?.contentType).to.equal('application/octet-stream');
  });

  it('answers null for what is not there, and removes it all the same', async () => {
    const store = newStore();
    expect(await store.get('no/such')).to.equal(null);
    expect(await store.remove(['no/such'])).to.deep.equal(['no/such']);
  });

  it('removes many', async () => {
    const store = newStore();
    const keys = Array.from({ length: 20 }, (_, at) => store.keyFor(`many-${at}`));
    await Promise.all(keys.map((key) => store.put(key, BYTES)));
    expect(await store.remove(keys)).to.have.members(keys);
    for (const key of keys) expect(server.objects.has(key)).to.equal(false);
  });

  it('signs so that another secret, key, region or bucket is refused', async () => {
    await away(newStore({ secretAccessKey: 'another' }).put('k', BYTES));
    await away(newStore({ accessKeyId: 'another' }).put('k', BYTES));
    await away(newStore({ region: 'eu-test-2' }).put('k', BYTES));
    expect(server.refused).to.deep.equal([
      'SignatureDoesNotMatch',
      'InvalidAccessKeyId',
      'AuthorizationHeaderMalformed',
    ]);
    expect(server.objects.has('k')).to.equal(false);
    expect(await away(newStore({ bucket: 'another-bucket' }).put('k', BYTES))).to.contain('NoSuchBucket');
    expect(await away(newStore({ bucket: 'another-bucket' }).get('k'))).to.contain('NoSuchBucket');
    expect(await newStore({ bucket: 'another-bucket' }).remove(['k'])).to.deep.equal([]);
  });

  it('tries again what may pass: a busy store, a connection that was just closed', async () => {
    const store = newStore();
    for (const fault of ['500', '503', 'cut', 'late-500'] as const) {
      server.fail('PUT', fault, 1);
      server.fail('GET', fault === 'cut' ? 'cut-in-body' : fault, 2);
      await store.put(store.keyFor('again'), BYTES);
      expect(await store.get(store.keyFor('again'))).to.deep.equal(BYTES);
      expect(server.requests, fault).to.have.length(5);
      server.requests.length = 0;
    }
  });

  it('is away where trying again does not help, and never returns half of something', async () => {
    const store = newStore();
    await store.put('turnkeep/test/half', BYTES);
    for (const fault of ['500', '503', 'cut', 'cut-in-body'] as const) {
      server.fail('GET', fault);
      expect(await away(store.get('turnkeep/test/half'))).not.to.contain(settings().secretAccessKey);
      server.heal();
      server.fail('PUT', fault);
      await away(store.put('turnkeep/test/other', BYTES));
      server.heal();
    }
  });

  it('asks once where it is refused, follows no redirect, and removes what it can', async () => {
    const store = newStore();
    server.fail('PUT', '403');
    expect(await away(store.put('k', BYTES))).to.contain('403 AccessDenied');
    expect(server.requests).to.deep.equal(['PUT k']);
    server.heal();
    server.fail('PUT', 'redirect');
    await away(store.put('k', BYTES));
    server.fail('DELETE', '403', 1);
    const keys = ['a', 'b', 'c'];
    expect(await store.remove(keys)).to.have.length(2);
    server.heal();
    server.fail('DELETE', '403');
    server.requests.length = 0;
    expect(await store.remove(Array.from({ length: 50 }, (_, at) => `x${at}`))).to.deep.equal([]);
    expect(server.requests).to.have.length(8);
  });

  it('does not wait for ever, and not three times', async () => {
    server.fail('GET', 'never');
    expect(await away(newStore({}, 200).get('k'))).to.contain('TimeoutError');
    expect(server.requests).to.deep.equal(['GET k']);
  });

  it('is away where nobody listens', async () => {
    const gone = await new S3Server().start();
    const store = newStore({ endpoint: gone.endpoint });
    await gone.stop();
    expect(await away(store.get('k'))).to.contain('ECONNREFUSED');
  });
});
