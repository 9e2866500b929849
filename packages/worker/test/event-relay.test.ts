import { EventStream } from '@turnkeep/shared/redis/event-stream';
import { expect } from 'chai';
import { createRedis, type TestRedis } from '../../../test/support/redis.js';
import { EventRelay } from '../src/event-relay.js';

describe('the event relay', () => {
  let redis: TestRedis;
  before(async () => {
    redis = await createRedis();
  });
  after(() => redis.close());

  it('takes nothing after it was dropped: a late event would seem to follow what was thrown away', async () => {
    const stream = new EventStream(redis.client);
    const relay = new EventRelay(stream, 'session', 'execution');
    relay.add(1, '{"n":1}');
    relay.flush();
    relay.add(2, '{"n":2}');
    relay.drop();
    relay.add(3, '{"n":3}');
    relay.flush();
    // Commands of one connection are answered in order: what the relay sent has been taken by now.
    const entries = await stream.read('session', 'execution', 0, 10);
    expect(entries).to.deep.equal([{ first: 1, last: 1, lines: ['{"n":1}'] }]);
  });
});
