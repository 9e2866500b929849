import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { unique } from '../support/environment.js';
import { callTool, never, reply, say } from '../support/model-script.js';
import { useCluster } from '../support/suite.js';
import { answer, silence } from '../support/tool-server.js';

describe('an agent’s limits (section 3)', () => {
  const cluster = useCluster({ mains: 1, workers: 1 });
  const limits = (fields: Record<string, number>) => ({ ...cluster.config().limits, ...fields });

  describe('maxSteps', () => {
    let chat: Chat;
    before(async () => {
      cluster.tools.on('look', answer('ok'));
      chat = await cluster.newChat({ tools: [cluster.httpTool('look')], limits: limits({ maxSteps: 2 }) });
    });

    it('ends the turn with step_limit when calls are outstanding, and the next history is valid', async () => {
      const marker = unique('steps');
      cluster.model.on(marker, callTool('look', {}), callTool('look', {}), say('never asked'));
      const turn = await chat.turn(marker);
      expect(turn.status).to.equal('error');
      expect(turn.error?.code).to.equal('step_limit');
      expect(cluster.model.requestsFor(marker)).to.have.length(2);
      expect((await chat.turn('Go on', { sessionId: turn.sessionId })).status).to.equal('success');
    });

    it('is no error for a turn that ends in its last step', async () => {
      const marker = unique('just');
      cluster.model.on(marker, callTool('look', {}), say('done'));
      expect(await chat.turn(marker)).to.include({ status: 'success', text: 'done' });
    });
  });

  describe('maxDurationMs', () => {
    let chat: Chat;
    before(async () => {
      cluster.tools.on('stuck', silence());
      chat = await cluster.newChat({ tools: [cluster.httpTool('stuck')], limits: limits({ maxDurationMs: 1_000 }) });
    });
    afterEach(() => cluster.model.idle());

    it('ends a turn whose model never answers with time_limit, and lets the request go', async () => {
      const marker = unique('never');
      cluster.model.on(marker, reply(say('so far'), never()));
      const turn = await chat.turn(marker);
      expect(turn.status).to.equal('error');
      expect(turn.error?.code).to.equal('time_limit');
      expect(await (await cluster.model.request(marker)).over).to.equal('aborted');
      expect((await chat.transcript(turn.sessionId)).messages[1]?.content).to.deep.equal([
        { type: 'text', text: 'so far' },
      ]);
      expect((await chat.turn('Quick', { sessionId: turn.sessionId })).status).to.equal('success');
    });

    it('ends a turn whose tool never answers, too', async () => {
      const marker = unique('stuck');
      cluster.model.on(marker, callTool('stuck', {}));
      const turn = await chat.turn(marker);
      expect(turn.error?.code).to.equal('time_limit');
      expect(await cluster.tools.callsOf('stuck').at(-1)?.over).to.equal('aborted');
      expect((await chat.turn('Quick', { sessionId: turn.sessionId })).status).to.equal('success');
    });
  });

  it('maxToolOutputChars: the model sees so many characters and a note of what was cut', async () => {
    cluster.tools.on('look', answer('ü😀'.repeat(500)));
    const chat = await cluster.newChat({
      tools: [cluster.httpTool('look')],
      limits: limits({ maxToolOutputChars: 100 }),
    });
    const marker = unique('cut');
    cluster.model.on(marker, callTool('look', {}), say('ok'));
    const turn = await chat.turn(marker);
    const { body } = await cluster.model.request(marker, 2);
    const told = String(body.messages?.at(-1)?.content);
    expect(told.match(/ü|😀/gu)?.length).to.be.within(90, 100);
    expect(told.replaceAll(/ü|😀/gu, '').trim(), 'the note').to.have.length.above(10);
    expect(turn.of('tool-result')[0], 'the event').to.include({ output: 'ü😀'.repeat(500) });
  });
});
