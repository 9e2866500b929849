import type { ModelMessage } from 'ai';
import { expect } from 'chai';
import fc from 'fast-check';
import { say } from '../../../../test/support/model-script.js';
import { ModelServer } from '../../../../test/support/model-server.js';
import {
  buildHistory,
  type HistoryEntry,
  type HistoryOptions,
  type HistoryToolCall,
} from '../../src/runtime/history.js';
import { acceptsFile } from '../../src/runtime/model.js';
import { modelAt, outcomeOf, speak, useEgress, user } from './speak.js';

const options: HistoryOptions = { providerKey: 'here', maxToolOutputChars: 1000, acceptsFile: () => false };

const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');

describe('the history that a model is given', () => {
  const egress = useEgress();
  const server = new ModelServer();
  before(() => server.start());
  after(() => server.stop());

  const build = (entries: HistoryEntry[], more: Partial<HistoryOptions> = {}) =>
    buildHistory(entries, { ...options, ...more });

  it('is text and calls, each step’s calls directly followed by their results', async () => {
    const history = await build([
      says('hi'),
      { type: 'step' },
      { type: 'text', text: 'Let me ' },
      { type: 'text', text: 'look.' },
      call({ callId: 'call_1', inputJson: '{"city":"Rome"}', outputJson: '{"sun":true}' }),
      call({ callId: 'call_2', outputJson: '"rain"' }),
      { type: 'step' },
      { type: 'text', text: 'Sunny.' },
      says('thanks'),
    ]);
    expect(history).to.deep.equal([
      { role: 'user', content: [{ type: 'text', text: 'hi' }] },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Let me look.' },
          { type: 'tool-call', toolCallId: 'call_1', toolName: 'get_weather', input: { city: 'Rome' } },
          { type: 'tool-call', toolCallId: 'call_2', toolName: 'get_weather', input: {} },
        ],
      },
      {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            toolCallId: 'call_1',
            toolName: 'get_weather',
            output: { type: 'text', value: '{"sun":true}' },
          },
          {
            type: 'tool-result',
            toolCallId: 'call_2',
            toolName: 'get_weather',
            output: { type: 'text', value: 'rain' },
          },
        ],
      },
      { role: 'assistant', content: [{ type: 'text', text: 'Sunny.' }] },
      { role: 'user', content: [{ type: 'text', text: 'thanks' }] },
    ]);
  });

  it('keeps partial text and leaves empty messages out', async () => {
    const history = await build([
      says('a'),
      { type: 'step' },
      { type: 'text', text: 'I was sa' },
      says('b'),
      { type: 'step' },
      { type: 'text', text: ' \n' },
      { type: 'step' },
      says('c'),
    ]);
    expect(history.map(({ role }) => role)).to.deep.equal(['user', 'assistant', 'user', 'user']);
  });

  it('puts text that stands after a call before it', async () => {
    const [, assistant, tool] = await build([says('a'), { type: 'step' }, call({}), { type: 'text', text: 'after' }]);
    expect((assistant!.content as { type: string }[]).map(({ type }) => type)).to.deep.equal(['text', 'tool-call']);
    expect(tool).to.include({ role: 'tool' });
  });

  const ends: [Partial<HistoryToolCall>, 'text' | 'error-text', RegExp][] = [
    [{ state: 'done', outputJson: '""' }, 'text', /^\[The tool gave no output\.\]$/],
    [{ state: 'done', outputJson: null }, 'text', /^\[The tool gave no output\.\]$/],
    [{ state: 'error', error: 'interrupted; it may have run' }, 'error-text', /^interrupted; it may have run$/],
    [{ state: 'error', outputJson: '{"status":500}' }, 'error-text', /^The tool failed\.\n\{"status":500\}$/],
    [{ state: 'cancelled' }, 'error-text', /Cancelled by the user/],
    [
      { state: 'denied', error: 'The user denied this call: too costly' },
      'error-text',
      /^The user denied this call: too costly$/,
    ],
    [{ state: 'running' }, 'error-text', /Interrupted.*may have run/],
    [{ state: 'suspended' }, 'error-text', /never answered/],
  ];
  for (const [ended, type, value] of ends) {
    it(`tells what happened to a call: ${JSON.stringify(ended)}`, async () => {
      const [, , tool] = await build([says('a'), { type: 'step' }, call({ outputJson: null, ...ended })]);
      const [result] = tool!.content as { output: { type: string; value: string } }[];
      expect(result!.output.type).to.equal(type);
      expect(result!.output.value).to.match(value);
    });
  }

  it('makes {} of arguments that are no JSON object', async () => {
    for (const inputJson of ['', 'nonsense', '[1]', '"x"', 'null', '{"a":']) {
      const [, assistant] = await build([says('a'), { type: 'step' }, call({ inputJson })]);
      expect((assistant!.content as object[])[0]).to.deep.include({ input: {} });
    }
  });

  it('cuts a long output and says so', async () => {
    const outputJson = JSON.stringify('😀'.repeat(2000));
    const [, , tool] = await build([says('a'), { type: 'step' }, call({ outputJson })]);
    const [result] = tool!.content as { output: { value: string } }[];
    expect(result!.output.value).to.equal(`${'😀'.repeat(1000)}\n[Cut: 1000 of 2000 characters are shown.]`);
  });

  it('gives a provider its own id back, once, and no other provider’s', async () => {
    const named = (callId: string, providerKey: string) => call({ callId, providerCallId: 'prov', providerKey });
    const history = await build([
      says('a'),
      { type: 'step' },
      named('call_00000000-0000-7000-8000-000000000001', 'elsewhere'),
      named('call_00000000-0000-7000-8000-000000000002', 'here'),
      named('call_00000000-0000-7000-8000-000000000003', 'here'),
    ]);
    const ids = (history[1]!.content as { toolCallId: string }[]).map(({ toolCallId }) => toolCallId);
    expect(ids).to.deep.equal([
      'call_00000000000070008000000000000001',
      'prov',
      'call_00000000000070008000000000000003',
    ]);
  });

  describe('with attachments', () => {
    const attached = (fileName: string, mimeType: string, bytes: string | Uint8Array = 'bytes') => ({
      fileName,
      mimeType,
      sizeBytes: bytes.length,
      load: (): Promise<Buffer | null> => Promise.resolve(Buffer.from(bytes)),
    });
    const withFiles = async (...attachments: ReturnType<typeof attached>[]) =>
      (await build([{ type: 'user', text: 'see', attachments }], { acceptsFile: (type) => type === 'image/png' }))[0]!;

    it('gives files where the provider takes them, as JSON can hold them', async () => {
      const message = await withFiles(attached('a.png', 'image/png', Buffer.from([1, 2, 255])));
      const file = { type: 'file', data: { type: 'data', data: 'AQL/' }, mediaType: 'image/png', filename: 'a.png' };
      expect(message.content).to.deep.equal([{ type: 'text', text: 'see' }, file]);
      expect(JSON.parse(JSON.stringify(message))).to.deep.equal(message);
    });

    it('gives text as text, storable', async () => {
      const message = await withFiles(
        attached('a.md', 'text/markdown', '# Über\0'),
        attached('b.json', 'application/json', '{}'),
      );
      expect(message.content).to.deep.include({
        type: 'text',
        text: '[Attached file a.md (text/markdown)]\n# Über\uFFFD',
      });
      expect(message.content).to.deep.include({ type: 'text', text: '[Attached file b.json (application/json)]\n{}' });
    });

    it('reaches the provider as an image', async () => {
      const message = await withFiles(attached('a.png', 'image/png', PNG));
      server.on('see', say('nice'));
      await speak({ model: modelAt(egress, server.baseUrl), messages: [message] });
      const { body } = await server.request('see');
      const url = `data:image/png;base64,${PNG.toString('base64')}`;
      expect(body.messages?.at(-1)?.content).to.deep.include({ type: 'image_url', image_url: { url } });
    });

    it('notes the rest, without loading it', async () => {
      const zip = { ...attached('a.zip', 'application/zip'), load: () => Promise.reject(new Error('was loaded')) };
      const message = await withFiles(zip);
      expect(message.content).to.deep.include({
        type: 'text',
        text: '[Attached file a.zip (application/zip, 5 bytes); its content cannot be shown to this model.]',
      });
    });

    it('notes what is gone from its store', async () => {
      const gone = { ...attached('a.png', 'image/png'), load: (): Promise<Buffer | null> => Promise.resolve(null) };
      const text = '[Attached file a.png (image/png, 5 bytes); its content is gone.]';
      expect((await withFiles(gone)).content).to.deep.include({ type: 'text', text });
    });

    it('gives the newest files that fit together, and notes older ones without loading them', async () => {
      const megabytes = (fileName: string, count: number, load?: () => Promise<never>) => ({
        ...attached(fileName, 'image/png'),
        sizeBytes: count * 1024 * 1024,
        ...(load && { load }),
      });
      const refuse = () => Promise.reject(new Error('was loaded'));
      const messages = await build(
        [
          { type: 'user', text: 'first', attachments: [megabytes('tiny.png', 1, refuse)] },
          { type: 'user', text: 'second', attachments: [megabytes('old.png', 20, refuse)] },
          {
            type: 'user',
            text: 'third',
            attachments: [megabytes('new.png', 15), attached('a.zip', 'application/zip')],
          },
        ],
        { acceptsFile: (type) => type === 'image/png' },
      );
      const shown: { type: string; text?: string; filename?: string }[] = messages.flatMap(({ content }) =>
        typeof content === 'string' ? [] : (content as { type: string }[]),
      );
      expect(shown.filter((part) => part.type === 'file').map((part) => part.filename)).to.deep.equal(['new.png']);
      const notes = shown.filter((part) => part.text?.includes('newer files take all the room'));
      expect(notes).to.have.length(2);
    });

    it('gives the newest file whatever its size', async () => {
      const huge = { ...attached('huge.png', 'image/png'), sizeBytes: 100 * 1024 * 1024 };
      const { content } = await withFiles(huge);
      expect(Array.isArray(content) && content.some((part) => part.type === 'file')).to.equal(true);
    });

    it('gives a message of nothing but a file', async () => {
      const [message] = await build([{ type: 'user', text: '', attachments: [attached('a.txt', 'text/plain', 'x')] }]);
      expect(message!.content).to.have.length(1);
    });

    it('knows what each provider takes', () => {
      const takes = (type: string) =>
        (['openai-compatible', 'openai', 'anthropic', 'google', 'demo'] as const).filter((name) =>
          acceptsFile(name, type),
        );
      expect(takes('image/png')).to.deep.equal(['openai-compatible', 'openai', 'anthropic', 'google']);
      expect(takes('application/pdf')).to.deep.equal(['openai', 'anthropic', 'google']);
      expect(takes('image/svg+xml')).to.deep.equal([]);
      expect(takes('text/plain')).to.deep.equal([]);
    });
  });

  describe('of any session', () => {
    it('is one that a strict provider takes', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(anyEntry, { maxLength: 14 }), async (entries) => {
          const history = await build(entries);
          checkPairs(history);
          const messages = JSON.parse(JSON.stringify([user('first'), ...history, user('last')])) as ModelMessage[];
          server.on('last', say('ok'));
          outcomeOf(await speak({ model: modelAt(egress, server.baseUrl), messages }));
          expect(server.complaints).to.deep.equal([]);
        }),
        { numRuns: 100 },
      );
    });
  });
});

/** What every provider asks: a call is followed by its result at once, and no id stands for two calls. */
function checkPairs(history: ModelMessage[]): void {
  const seen = new Set<string>();
  for (const [index, { role, content }] of history.entries()) {
    expect(content.length).to.be.above(0);
    if (role !== 'assistant') continue;
    const calls = (content as { type: string; toolCallId?: string }[]).flatMap(({ toolCallId = [] }) => toolCallId);
    const next = history[index + 1];
    const results = next?.role === 'tool' ? (next.content as { toolCallId: string }[]) : [];
    expect(results.map(({ toolCallId }) => toolCallId)).to.deep.equal(calls);
    for (const id of calls) expect(seen.has(id)).to.equal(false);
    for (const id of calls) seen.add(id);
  }
}

function says(text: string): HistoryEntry {
  return { type: 'user', text, attachments: [] };
}

function call(more: Partial<HistoryToolCall>): HistoryToolCall {
  return {
    type: 'tool-call',
    callId: 'call_0',
    toolName: 'get_weather',
    inputJson: '{}',
    state: 'done',
    outputJson: '"ok"',
    error: null,
    providerCallId: null,
    providerKey: null,
    ...more,
  };
}

/** Text as it is stored: well-formed and without U+0000, since everything that comes in is made so (section 8). */
const anyText = fc.string({ unit: 'binary', maxLength: 12 }).map((text) => text.toWellFormed().replaceAll('\0', ' '));

const anyEntry: fc.Arbitrary<HistoryEntry> = fc.oneof(
  anyText.map((text) => says(text)),
  fc.constant<HistoryEntry>({ type: 'step' }),
  anyText.map((text): HistoryEntry => ({ type: 'text', text })),
  fc.record({
    type: fc.constant('tool-call' as const),
    callId: fc.uuid().map((id) => `call_${id}`),
    toolName: fc.oneof(fc.constant('get_weather'), anyText),
    inputJson: fc.oneof(fc.json(), fc.constant('{"a":'), anyText),
    state: fc.constantFrom('running', 'suspended', 'done', 'error', 'denied', 'cancelled'),
    outputJson: fc.option(fc.json()),
    error: fc.option(anyText),
    providerCallId: fc.option(fc.constantFrom('', ' ', 'same', 'other')),
    providerKey: fc.constantFrom('here', 'elsewhere', null),
  }),
);
