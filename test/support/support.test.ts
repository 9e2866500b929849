import { expect } from 'chai';
import { gate } from './gate.js';
import { HttpClient } from './http.js';
import { type ModelRequestBody, objection } from './model-rules.js';
import { callTool, cut, never, reply, say, think } from './model-script.js';
import { ModelServer } from './model-server.js';
import { SseParser } from './sse-parser.js';

/** The instruments of the other tests: an instrument that cannot fail proves nothing. */
describe('the tests’ own instruments', () => {
  describe('the reader of streams', () => {
    const parse = (...chunks: (string | Buffer)[]) => {
      const types: string[] = [];
      const parser = new SseParser((event) => types.push(`${event.id ?? ''}:${event.data.type}`));
      for (const chunk of chunks) parser.push(Buffer.from(chunk as string));
      parser.end();
      return { types, comments: parser.comments };
    };
    const bytes = Buffer.from('id: 1-0\ndata: {"type":"text-delta","delta":"😀"}\n\n');

    it('reads events and comments, wherever the bytes are cut', () => {
      for (let at = 0; at < bytes.length; at++) {
        expect(parse(bytes.subarray(0, at), bytes.subarray(at)).types).to.deep.equal(['1-0:text-delta']);
      }
      expect(parse(': keep-alive\n\ndata: {"type":"done"}\n\n')).to.deep.equal({
        types: [':done'],
        comments: ['keep-alive'],
      });
    });

    const refused: Record<string, string | Buffer> = {
      'a frame without an end': 'data: {"type":"done"}\n',
      'two data lines': 'data: {"type":\ndata: "done"}\n\n',
      'an unknown field': 'event: x\ndata: {"type":"done"}\n\n',
      'data that is no JSON': 'data: hello\n\n',
      'data without a type': 'data: {"a":1}\n\n',
      'an id without data': 'id: 1\n\n',
      'bytes that are not UTF-8': Buffer.from('data: {"type":"done"}\xff\n\n', 'latin1'),
      'a lone surrogate': 'data: {"type":"text-delta","delta":"\\ud83d"}\n\n',
      'an event above 64 KiB': `data: {"type":"text-delta","delta":"${'x'.repeat(65_536)}"}\n\n`,
    };
    for (const [what, stream] of Object.entries(refused)) {
      it(`refuses ${what}`, () => {
        expect(() => parse(stream)).to.throw();
      });
    }
  });

  describe('the strict provider', () => {
    const user = { role: 'user', content: 'hi' };
    const call = (id: string, json = '{}') => ({ id, type: 'function', function: { name: 'f', arguments: json } });
    const calls = (...tool_calls: object[]) => ({ role: 'assistant', content: null, tool_calls });
    const result = (tool_call_id: string) => ({ role: 'tool', tool_call_id, content: 'ok' });
    const judge = (...messages: ModelRequestBody['messages'] & object) => objection({ model: 'm', messages });

    it('takes an ordinary history', () => {
      const system = { role: 'system', content: 'be kind' };
      const said = { role: 'assistant', content: 'hello' };
      expect(judge(system, user, calls(call('a'), call('b')), result('b'), result('a'), said, user)).to.equal(
        undefined,
      );
    });

    const refused: Record<string, object[]> = {
      'a call without its result': [user, calls(call('a')), user],
      'a result without a call': [user, result('a')],
      'a call that is answered twice': [user, calls(call('a')), result('a'), result('a')],
      'a call left open at the end': [user, calls(call('a'), call('b')), result('a')],
      'duplicate call ids': [user, calls(call('a'), call('a')), result('a')],
      'an empty assistant message': [user, { role: 'assistant', content: null }, user],
      'an assistant message with empty text': [user, { role: 'assistant', content: '' }, user],
      'an empty user message': [{ role: 'user', content: '' }],
      'arguments that are not JSON': [user, calls(call('a', '{"x"')), result('a')],
      'arguments that are no object': [user, calls(call('a', '[1]')), result('a')],
      'an unknown role': [user, { role: 'function', content: 'x' }],
      'an assistant first': [{ role: 'assistant', content: 'x' }, user],
      'a lone surrogate': [{ role: 'user', content: '\ud83d' }],
      'U+0000': [{ role: 'user', content: 'a\0b' }],
      'an answer already given': [user, { role: 'assistant', content: 'x' }],
    };
    for (const [what, messages] of Object.entries(refused)) {
      it(`refuses ${what}`, () => {
        expect(judge(...messages)).to.be.a('string');
      });
    }
  });

  describe('the scripted model', () => {
    const model = new ModelServer();
    before(() => model.start());
    after(() => model.stop());
    const ask = (content: string, stream = true) => {
      const body = { model: 'm', stream, messages: [{ role: 'user', content }] };
      return new HttpClient(model.baseUrl).request('/chat/completions', { method: 'POST', body });
    };

    it('plays its replies in turn, and complains about one request too many', async () => {
      model.on('weather', reply(think('hm'), callTool('get', { city: 'Oslo' })), say('It ', 'rains'));
      const first = await ask('weather');
      expect(first.text).to.contain('reasoning_content').and.to.contain('"finish_reason":"tool_calls"');
      expect((await ask('weather', false)).json<{ choices: unknown[] }>().choices[0]).to.nested.include({
        'message.content': 'It rains',
        finish_reason: 'stop',
      });
      expect((await ask('weather')).status).to.equal(400);
      expect(model.complaints.splice(0)).to.have.length(1);
    });

    it('stands at a gate until it is opened', async () => {
      const held = model.hold('held', 'before', 'after');
      let over = false;
      const answered = ask('held').finally(() => {
        over = true;
      });
      await held.reached();
      expect({ over, open: model.open }).to.deep.equal({ over: false, open: 1 });
      held.open();
      expect((await answered).text).to.match(/before.*after.*\[DONE\]/s);
      await model.idle();
    });

    it('notices a client that leaves', async () => {
      model.on('leave', never());
      const leaving = new AbortController();
      const body = JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'leave' }] });
      const gone = fetch(`${model.baseUrl}/chat/completions`, { method: 'POST', body, signal: leaving.signal });
      gone.catch(() => {});
      const request = await model.request('leave');
      leaving.abort();
      expect(await request.over).to.equal('aborted');
    });

    it('splits characters over writes when told to, and cuts the connection when told to', async () => {
      model.on('bytes', say('日本 😀').bytewise());
      expect((await ask('bytes')).text).to.contain('日本 😀');
      const held = gate();
      model.on('broken', reply(say('half', held), cut()));
      const broken = ask('broken');
      broken.catch(() => {});
      held.open();
      expect(await broken.then(() => 'answered').catch(() => 'broken')).to.equal('broken');
    });
  });
});
