import { expect } from 'chai';
import fc from 'fast-check';
import {
  countCodePoints,
  isStorable,
  isStorableJson,
  takeCodePoints,
  toStorable,
  toStorableJson,
} from '../../src/contract/text.js';

/** Any UTF-16 at all, with what Postgres refuses more often than chance would have it. */
const anyText = fc
  .array(
    fc.oneof(fc.constantFrom('\0', '\ud83d', '\ude00', '😀', 'é', 'ا'), fc.string({ unit: 'binary', maxLength: 4 })),
  )
  .map((parts) => parts.join(''));
const anyJson = fc.jsonValue({ stringUnit: 'binary' });

describe('text', () => {
  it('takes astral characters, right-to-left, combining marks and emoji as they are', () => {
    for (const text of ['', '😀👨‍👩‍👧', 'שלום', 'e\u0301', '\u0001\u001f', '\ufffe\uffff', '\u{10ffff}']) {
      expect(isStorable(text)).to.equal(true);
      expect(toStorable(text)).to.equal(text);
    }
  });

  it('refuses U+0000 and lone surrogates, and replaces each by U+FFFD', () => {
    const cases: [string, string][] = [
      ['a\0b', 'a\ufffdb'],
      ['\ud83d', '\ufffd'],
      ['\ude00\ud83d', '\ufffd\ufffd'],
      ['😀\ud83d\0', '😀\ufffd\ufffd'],
    ];
    for (const [text, mended] of cases) {
      expect(isStorable(text)).to.equal(false);
      expect(toStorable(text)).to.equal(mended);
    }
  });

  it('makes any text storable, survives UTF-8 and changes nothing the second time', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const stored = toStorable(text);
        expect(isStorable(stored)).to.equal(true);
        expect(stored.length).to.equal(text.length);
        expect(toStorable(stored)).to.equal(stored);
        expect(Buffer.from(stored, 'utf8').toString('utf8')).to.equal(stored);
        expect(isStorable(text)).to.equal(stored === text);
      }),
    );
  });

  it('counts code points as iteration does, and takes a prefix that splits none', () => {
    fc.assert(
      fc.property(anyText, fc.nat(12), (text, n) => {
        const points = Array.from(text);
        expect(countCodePoints(text)).to.equal(points.length);
        expect(takeCodePoints(text, n)).to.equal(points.slice(0, n).join(''));
      }),
    );
  });

  it('mends strings and keys at any depth of a JSON value, and leaves a clean value itself', () => {
    const value = { 'k\0': ['a\ud800', { ok: 'x' }], n: 1, none: null };
    expect(isStorableJson(value)).to.equal(false);
    expect(toStorableJson(value)).to.deep.equal({ 'k\ufffd': ['a\ufffd', { ok: 'x' }], n: 1, none: null });
    const clean = { a: ['b', { c: 'd' }] };
    expect(toStorableJson(clean)).to.equal(clean);
  });

  it('keeps a key called __proto__ a key', () => {
    const value = JSON.parse('{"__proto__": {"a": "\\u0000"}}') as object;
    const mended = toStorableJson(value);
    expect(JSON.stringify(mended)).to.equal('{"__proto__":{"a":"\ufffd"}}');
    expect(Object.getPrototypeOf(mended)).to.equal(Object.prototype);
  });

  it('agrees with the text of the JSON: storable means no escape of NUL or of a lone surrogate', () => {
    fc.assert(
      fc.property(anyJson, (value) => {
        const mended = toStorableJson(value);
        expect(isStorableJson(mended)).to.equal(true);
        expect(isStorableJson(value)).to.equal(!/(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/.test(JSON.stringify(value)));
      }),
    );
  });
});
