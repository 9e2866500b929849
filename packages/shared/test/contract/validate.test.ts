import { expect } from 'chai';
import fc from 'fast-check';
import { ChatRequest, QueueEdit, ResumeRequest, TranscriptView } from '../../src/contract/chat.js';
import { ChatEvent } from '../../src/contract/events.js';
import { newId } from '../../src/contract/ids.js';
import { ProblemError } from '../../src/contract/problems.js';
import { isStorable } from '../../src/contract/text.js';
import { accept, compile } from '../../src/contract/validate.js';

const chat = compile(ChatRequest);
const resume = compile(ResumeRequest);
const event = compile(ChatEvent);

/** The pointers of the errors; none where the value is accepted. */
function pointers(checked: ReturnType<typeof chat | typeof event>): string[] {
  return checked.ok ? [] : checked.errors.map((error) => error.pointer);
}

describe('validating a request', () => {
  it('accepts every form of a chat request and hands back the very value', () => {
    const sessionId = newId();
    const values = [
      { message: '' },
      { message: 'Hi', sessionId },
      { message: 'Hi', sessionId: sessionId.toUpperCase() },
      {
        message: '',
        attachments: [{ attachmentId: newId() }, { fileName: 'a/b.txt', mimeType: 'text/plain', data: 'QQ==' }],
      },
    ];
    for (const value of values) {
      const checked = chat(value);
      expect(checked.ok && checked.value).to.equal(value);
    }
  });

  it('names what is wrong by JSON Pointer', () => {
    expect(pointers(chat(null))).to.deep.equal(['']);
    expect(pointers(chat({}))).to.deep.equal(['/message']);
    expect(pointers(chat({ message: 1, 'a/b~c': 1 }))).to.have.members(['/message', '/a~1b~0c']);
    expect(pointers(chat({ message: '', sessionId: `urn:uuid:${newId()}` }))).to.deep.equal(['/sessionId']);
    expect(
      pointers(chat({ message: '', attachments: [{ fileName: 'a\n', mimeType: 'text', data: 'QQ==' }] })),
    ).to.have.members(['/attachments/0/fileName', '/attachments/0/mimeType']);
  });

  it('reports for a union the errors of the member that comes closest', () => {
    const ids = { runId: newId(), toolCallId: 'c' };
    expect(resume({ ...ids, resumeData: { approved: 'yes' } })).to.deep.equal({
      ok: false,
      errors: [{ pointer: '/resumeData/approved', message: 'must be boolean' }],
    });
    expect(resume({ ...ids, resumeData: { approved: false, reason: 'No.' } }).ok).to.equal(true);
    expect(resume({ ...ids, resumeData: { answer: '' } }).ok).to.equal(true);
    expect(resume({ ...ids, resumeData: { approved: true, answer: 'x' } }).ok).to.equal(false);
    expect(resume({ ...ids, resumeData: {} }).ok).to.equal(false);
  });

  it('refuses data that is not padded base64, and empty files', () => {
    const withData = (data: string) =>
      chat({ message: '', attachments: [{ fileName: 'a', mimeType: 'a/b', data }] }).ok;
    for (const data of ['', '=', '====', 'QQ', 'QQ=', 'Q===', 'QQ==QQ==', 'QQ=Q', 'QQ==\n', 'Q-_=', 'é===']) {
      expect(withData(data), JSON.stringify(data)).to.equal(false);
    }
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1 }), (bytes) => {
        expect(withData(Buffer.from(bytes).toString('base64'))).to.equal(true);
      }),
    );
  });

  it('checks a file of ten megabytes', () => {
    const data = Buffer.alloc(10_485_760, 1).toString('base64');
    expect(chat({ message: '', attachments: [{ fileName: 'a', mimeType: 'a/b', data }] }).ok).to.equal(true);
  });

  it('refuses U+0000 and lone surrogates wherever they stand, keys included', () => {
    expect(pointers(chat({ message: 'a\0' }))).to.deep.equal(['/message']);
    expect(pointers(chat({ message: '', attachments: [{ attachmentId: '\ud800' }] }))).to.deep.equal([
      '/attachments/0/attachmentId',
    ]);
    expect(pointers(chat({ message: '', '\0': 1 }))).to.deep.equal(['']);
  });

  it('refuses pathological nesting without walking it', () => {
    const depth = 100_000;
    const value = JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`) as unknown;
    const checked = chat({ message: value });
    expect(checked.ok ? [] : checked.errors.map((error) => error.message)).to.deep.equal([
      'must not be nested deeper than 64 levels',
    ]);
  });

  it('reports at most 20 errors, also of a body made of errors', () => {
    const wrong = (count: number) => chat({ message: '', attachments: Array.from({ length: count }, () => ({})) });
    expect(pointers(wrong(100))).to.have.length(20);
    expect(pointers(wrong(200_000))).to.have.length.within(1, 20);
    expect(pointers(chat({ message: '', attachments: Array.from({ length: 100 }, () => '\0') }))).to.have.length(20);
  });

  it('never says the offending value', () => {
    const secret = 'sk-very-secret';
    const bodies: unknown[] = [
      { message: 1, sessionId: secret },
      { message: { secret } },
      { message: '', attachments: [{ fileName: `${secret}\n`, mimeType: secret, data: secret }, secret] },
      { message: `${secret}\0` },
      secret,
    ];
    for (const body of bodies) {
      const checked = chat(body);
      expect(checked.ok).to.equal(false);
      expect(JSON.stringify(checked)).not.to.contain(secret);
    }
  });

  it('cuts a key without end out of the pointer', () => {
    const [pointer = ''] = pointers(chat({ message: '', ['😀'.repeat(100_000)]: 1 }));
    expect(pointer.length).to.be.below(200);
    expect(pointer.isWellFormed()).to.equal(true);
  });

  it('takes any JSON without throwing, and any storable message', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        expect(chat(value)).to.have.property('ok');
      }),
    );
    const edit = compile(QueueEdit);
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }).filter(isStorable), (message) => {
        expect(edit({ message }).ok).to.equal(true);
      }),
    );
  });

  it('becomes a problem of the code invalid_request with the errors', () => {
    expect(accept(chat({ message: 'x' }), 'The body')).to.deep.equal({ message: 'x' });
    expect(() => accept(chat({}), 'The body'))
      .to.throw(ProblemError)
      .that.deep.includes({ code: 'invalid_request', errors: [{ pointer: '/message', message: 'is required' }] });
  });
});

describe('validating events and transcripts', () => {
  it('follows delegates of delegates', () => {
    const chunk = (inner: unknown) => ({ type: 'subagent-chunk', toolCallId: 'c', chunk: inner });
    expect(event(chunk(chunk({ type: 'text-delta', id: '1', delta: 'x' }))).ok).to.equal(true);
    expect(pointers(event(chunk(chunk({ type: 'text-delta', id: '1', delta: 1 }))))).to.deep.equal([
      '/chunk/chunk/delta',
    ]);
    expect(pointers(event(chunk({ type: 'done' })))).to.deep.equal(['/chunk/type']);
  });

  it('follows the calls of a delegate in the transcript', () => {
    const transcript = (call: object) => ({
      messages: [
        { ...message, content: [{ ...part, child: { text: '', reasoning: '', truncated: false, toolCalls: [call] } }] },
      ],
      openSuspensions: [],
      activeExecutionId: null,
    });
    const part = { type: 'tool-call', toolCallId: 'c', toolName: 't', input: {}, state: 'done', output: 1 };
    const message = { id: newId(), role: 'assistant', executionId: newId(), createdAt: new Date().toISOString() };
    const check = compile(TranscriptView);
    expect(check(transcript(part)).ok).to.equal(true);
    expect(check(transcript({ ...part, state: 'gone' })).ok).to.equal(false);
  });

  it('knows no boundary event', () => {
    expect(event({ type: 'boundary' })).to.deep.equal({
      ok: false,
      errors: [{ pointer: '/type', message: 'must name one of the known types' }],
    });
  });
});
