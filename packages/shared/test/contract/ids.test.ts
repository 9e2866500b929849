import { expect } from 'chai';
import { isUuid, newId } from '../../src/contract/ids.js';

describe('ids', () => {
  it('are UUIDs of version 7 that hold the time', () => {
    const before = Date.now();
    const id = newId();
    expect(id).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const ms = Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);
    expect(ms).to.be.within(before, Date.now() + 1);
  });

  it('rise strictly, also more than fit into a millisecond', () => {
    const ids = Array.from({ length: 50_000 }, newId);
    expect(ids.every((id, index) => index === 0 || id > ids[index - 1]!)).to.equal(true);
  });

  it('rise also when the clock is set back', () => {
    const now = Date.now;
    const first = newId();
    try {
      Date.now = () => now() - 3_600_000;
      expect(newId() > first).to.equal(true);
    } finally {
      Date.now = now;
    }
  });

  it('are recognised in any version and case, and nothing else is', () => {
    expect(isUuid('6F9619FF-8B86-D011-B42D-00C04FC964FF')).to.equal(true);
    expect(isUuid('00000000-0000-0000-0000-000000000000')).to.equal(true);
    for (const text of ['', 'urn:uuid:6f9619ff-8b86-d011-b42d-00c04fc964ff', '6f9619ff8b86d011b42d00c04fc964ff']) {
      expect(isUuid(text)).to.equal(false);
    }
    expect(isUuid('6f9619ff-8b86-d011-b42d-00c04fc964ff\n')).to.equal(false);
    expect(isUuid('6f9619ff-8b86-d011-b42d-00c04fc964fg')).to.equal(false);
  });
});
