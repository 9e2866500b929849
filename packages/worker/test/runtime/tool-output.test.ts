import { expect } from 'chai';
import { forModel, toolMessage } from '../../src/runtime/tool-output.js';

describe('what a model sees of a tool’s output', () => {
  it('is text as it is, and other values as JSON', () => {
    expect(forModel('a "b"', 100)).to.equal('a "b"');
    expect(forModel({ a: [1, null] }, 100)).to.equal('{"a":[1,null]}');
    expect(forModel(null, 100)).to.equal('null');
    expect(forModel(false, 100)).to.equal('false');
  });

  it('is at most maxChars code points, with a note of what was cut', () => {
    expect(forModel('x'.repeat(10), 10)).to.equal('x'.repeat(10));
    expect(forModel('😀'.repeat(10), 10)).to.equal('😀'.repeat(10));
    expect(forModel('😀'.repeat(11), 10)).to.equal(`${'😀'.repeat(10)}\n[Cut: 10 of 11 characters are shown.]`);
    expect(forModel({ a: 'x'.repeat(100) }, 8)).to.equal('{"a":"xx\n[Cut: 8 of 108 characters are shown.]');
  });

  it('is never empty', () => {
    expect(forModel('', 10)).to.equal('[The tool gave no output.]');
  });

  it('goes to the provider under the id that the call has there', () => {
    const results = [
      { callId: 'call_1', toolName: 'a', output: 1, isError: false },
      { callId: 'call_2', toolName: 'b', output: 'no', isError: true },
    ];
    expect(toolMessage(results, { call_1: 'prov_1' }, 10)).to.deep.equal({
      role: 'tool',
      content: [
        { type: 'tool-result', toolCallId: 'prov_1', toolName: 'a', output: { type: 'text', value: '1' } },
        { type: 'tool-result', toolCallId: 'call_2', toolName: 'b', output: { type: 'error-text', value: 'no' } },
      ],
    });
  });
});
