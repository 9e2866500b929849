import { randomBytes } from 'node:crypto';
import { open, seal, UnsealError } from '@turnkeep/shared/secrets/seal';
import { expect } from 'chai';

describe('sealing a credential', () => {
  const key = randomBytes(32);
  const id = '01890000-0000-7000-8000-000000000001';

  it('gives back exactly what went in, for its key and row', () => {
    for (const secret of ['sk-1', '', '🔑 مفتاح', 'x'.repeat(10_000)])
      expect(open(key, id, seal(key, id, secret))).to.equal(secret);
  });

  it('is another text each time and holds nothing of the secret', () => {
    const first = seal(key, id, 'sk-very-secret');
    expect(first.equals(seal(key, id, 'sk-very-secret'))).to.equal(false);
    expect(first.toString('latin1')).not.to.contain('secret');
  });

  it('opens in no other row and with no other key', () => {
    const sealed = seal(key, id, 'sk-1');
    expect(() => open(key, id.replace(/1$/, '2'), sealed)).to.throw(UnsealError);
    expect(() => open(randomBytes(32), id, sealed)).to.throw(UnsealError);
  });

  it('takes no change of any byte, and nothing that is cut', () => {
    const sealed = seal(key, id, 'sk-1');
    for (let at = 0; at < sealed.length; at += 1) {
      const changed = Buffer.from(sealed);
      changed[at]! ^= 1;
      expect(() => open(key, id, changed), `byte ${at}`).to.throw(UnsealError);
    }
    for (let length = 0; length < sealed.length; length += 1)
      expect(() => open(key, id, sealed.subarray(0, length)), `${length} bytes`).to.throw(UnsealError);
  });
});
