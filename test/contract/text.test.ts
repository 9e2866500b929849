import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { textOf } from '../support/model-rules.js';
import { callTool, callToolRaw, reply, say, think } from '../support/model-script.js';
import { useCluster } from '../support/suite.js';
import { answer } from '../support/tool-server.js';

/** Texts that come back exactly as they went in (section 8). */
const TEXTS: Record<string, string> = {
  'astral characters': '𝒳 𐍈 😀 🇳🇴',
  'emoji joined to families': '👨‍👩‍👧‍👦 👩🏽‍🚀',
  'right-to-left text': 'שלום עולם مرحبا بالعالم \u202egnirts\u202c',
  'combining marks': 'e\u0301 versus é, Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢',
  'line ends and tabs': 'one\ntwo\r\nthree\rfour\tfive\n\n\ndata: six\n\nid: seven\n: eight',
  'separators that JavaScript escapes': 'a\u2028b\u2029c\u0085d\ufeffe',
  'JSON and HTML': '{"type":"done"} <script>alert(1)</script> &amp; \\u0041 \\',
  'control characters': 'bell \u0007 escape \u001b[31m delete \u007f',
  'spaces at both ends': '  \n padded \n  ',
  noncharacters: '\ufffe \uffff \u{10ffff}',
};

describe('text (section 8)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat({ tools: [cluster.httpTool('look')] });
  });

  for (const [what, text] of Object.entries(TEXTS)) {
    it(`keeps ${what}, in the message and in the answer`, async () => {
      const marker = unique('text');
      cluster.model.on(marker, say(text));
      const turn = await chat.turn(`${text}${marker}${text}`);
      expect(turn.text).to.equal(text);
      const message = turn.of('execution-started')[0]?.message as { text: string };
      expect(message.text).to.equal(`${text}${marker}${text}`);
      const { messages } = await chat.transcript(turn.sessionId);
      expect(messages.map((one) => one.content)).to.deep.equal([
        [{ type: 'text', text: `${text}${marker}${text}` }],
        [{ type: 'text', text }],
      ]);
      const { body } = await cluster.model.request(marker);
      expect(textOf(body.messages?.at(-1)?.content)).to.equal(`${text}${marker}${text}`);
    });
  }

  it('joins characters that the model’s connection splits into single bytes', async () => {
    const marker = unique('bytes');
    const text = 'é – 日本語 – 😀👨‍👩‍👧‍👦';
    cluster.model.on(marker, reply(think(text), say(text)).bytewise());
    const turn = await chat.turn(marker);
    expect(turn).to.include({ text, reasoning: text, status: 'success' });
  });

  it('replaces U+0000 and lone surrogates of a model by U+FFFD', async () => {
    const marker = unique('broken-text');
    cluster.model.on(marker, reply(think('a\0b'), say('c\0d', 'e\ud83dx', '\ude00y')));
    const turn = await chat.turn(marker);
    expect(turn).to.include({ reasoning: 'a\ufffdb', text: 'c\ufffdde\ufffdx\ufffdy', status: 'success' });
    const { messages } = await chat.transcript(turn.sessionId);
    expect(messages.at(-1)?.content).to.deep.equal([
      { type: 'reasoning', text: 'a\ufffdb' },
      { type: 'text', text: 'c\ufffdde\ufffdx\ufffdy' },
    ]);
  });

  it('never splits a character between two deltas, though the model does', async () => {
    const marker = unique('halves');
    cluster.model.on(marker, say('a\ud83d', '\ude00b'));
    const turn = await chat.turn(marker);
    // Each delta was checked to be well-formed when it was read.
    expect(turn.text).to.equal('a😀b');
  });

  it('cleans what a tool answers and what a model calls it with', async () => {
    const marker = unique('broken-tool');
    cluster.tools.on('look', answer({ 'key\0': 'v\0', half: '\udc00' }));
    cluster.model.on(marker, callTool('look', { at: 'x\0\ud83d' }), say('ok'));
    const turn = await chat.turn(marker);
    expect(turn.status).to.equal('success');
    expect(turn.of('tool-call')[0]?.input).to.deep.equal({ at: 'x\ufffd\ufffd' });
    expect(turn.of('tool-result')[0]?.output).to.deep.equal({ 'key\ufffd': 'v\ufffd', half: '\ufffd' });
    const again = unique('again');
    cluster.model.on(again, say('still fine'));
    const next = await chat.turn(again, { sessionId: turn.sessionId });
    expect(next.status).to.equal('success');
  });

  it('keeps numbers, nesting and odd keys of a tool call', async () => {
    const marker = unique('odd');
    const input = { __proto__x: 1, constructor: 'c', 'a/b~c': [1.5, -0.25, 1e21, null, true, { '': {} }] };
    cluster.tools.on('look', answer(input));
    cluster.model.on(marker, callToolRaw('look', [JSON.stringify(input)]), say('ok'));
    const turn = await chat.turn(marker);
    expect(turn.of('tool-call')[0]?.input).to.deep.equal(input);
    expect(turn.of('tool-result')[0]?.output).to.deep.equal(input);
    expect(cluster.tools.callsOf('look').at(-1)?.body).to.deep.equal(input);
  });
});
