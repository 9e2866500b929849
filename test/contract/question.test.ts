import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { textOf } from '../support/model-rules.js';
import { callTool, reply, say } from '../support/model-script.js';
import { expectProblem } from '../support/problem.js';
import { APPROVE, suspend } from '../support/resume.js';
import { useCluster } from '../support/suite.js';

describe('question cards (sections 3 and 5)', () => {
  const cluster = useCluster();
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat({ tools: [{ type: 'question', name: 'ask_user' }] });
  });

  async function asked(input: unknown, ...replies: Parameters<typeof reply>) {
    const marker = unique('asked');
    cluster.model.on(marker, callTool('ask_user', input), ...(replies.length > 0 ? replies : [say('Noted.')]));
    return { marker, run: await suspend(chat, marker) };
  }

  it('is offered with the arguments of section 3', async () => {
    const marker = unique('offer');
    await chat.turn(marker);
    const [tool] = (await cluster.model.request(marker)).body.tools as { function: Record<string, unknown> }[];
    expect(tool?.function.name).to.equal('ask_user');
    expect(tool?.function.description).to.be.a('string').and.not.equal('');
    const parameters = tool?.function.parameters as { properties: object; required: string[] } | undefined;
    expect(Object.keys(parameters?.properties ?? {})).to.deep.equal(['question', 'choices', 'multiple']);
    expect(parameters?.required).to.deep.equal(['question']);
  });

  it('suspends with the question, its choices and `multiple`, as the model gave them', async () => {
    const input = { question: 'Welche Farbe? 🎨', choices: ['rot', 'grün'], multiple: true };
    const { run } = await asked(input);
    expect(run.calls[0]).to.deep.include({ kind: 'question', toolName: 'ask_user', input });
    const { openSuspensions } = await chat.transcript(run.sessionId);
    expect(openSuspensions[0]).to.deep.include({ kind: 'question', input });
  });

  it('a typed answer is the call’s output, exactly as it was typed, and the turn goes on', async () => {
    const { marker, run } = await asked({ question: 'And?' });
    const typed = 'שלום 👋🏽 é\u0301 <b>';
    const resumed = await run.resume(run.id(), { answer: typed }, { main: 1 });
    expect(resumed).to.include({ status: 'success', text: 'Noted.' });
    expect(resumed.of('tool-result')[0]).to.include({ output: typed, isError: false });
    const messages = (await cluster.model.request(marker, 2)).body.messages;
    expect(textOf(messages?.at(-1)?.content)).to.equal(typed);
    const { messages: shown } = await chat.transcript(run.sessionId);
    expect(shown.at(-1)?.content[0]).to.deep.include({ state: 'done', output: typed });
  });

  it('refuses an approval as its answer, and an answer above the limit of a message', async () => {
    const { run } = await asked({ question: 'And?' });
    expectProblem(await run.post({ toolCallId: run.id(), resumeData: APPROVE }), 400, 'invalid_request');
    const long = { answer: 'x'.repeat(100_001) };
    expectProblem(await run.post({ toolCallId: run.id(), resumeData: long }), 400, 'invalid_request');
    await run.accept(run.id(), { answer: '😀'.repeat(100_000) });
    await chat.settled(run.sessionId, 2);
  });

  for (const [what, input] of [
    ['no question', { choices: ['a'] }],
    ['choices that are no list', { question: '?', choices: 'a, b' }],
    ['choices that are no texts', { question: '?', choices: [1] }],
    ['`multiple` that is no yes or no', { question: '?', multiple: 'no' }],
  ] as const) {
    it(`${what}: no card, the model is told`, async () => {
      const marker = unique('bad-card');
      cluster.model.on(marker, callTool('ask_user', input), say('Never mind.'));
      const turn = await chat.turn(marker);
      expect(turn).to.include({ status: 'success', text: 'Never mind.' });
      expect(turn.of('tool-result')[0]).to.include({ isError: true });
    });
  }

  it('several questions in one step are several cards', async () => {
    const marker = unique('two');
    const ask = (question: string) => callTool('ask_user', { question });
    cluster.model.on(marker, reply(ask('First?'), ask('Second?')), say('Both.'));
    const run = await suspend(chat, marker);
    expect(await run.accept(run.id(1), { answer: 'two' })).to.include({ remaining: 1 });
    expect((await run.resume(run.id(0), { answer: 'one' })).text).to.equal('Both.');
    const messages = (await cluster.model.request(marker, 2)).body.messages ?? [];
    expect(messages.slice(-2).map((message) => textOf(message.content))).to.deep.equal(['one', 'two']);
  });
});
