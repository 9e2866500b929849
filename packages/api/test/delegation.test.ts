import { checkDelegates } from '@turnkeep/shared/agents/delegation';
import { expect } from 'chai';
import { demoAgent, useInProcess } from './support/in-process.js';

describe('the delegates of an agent (section 3)', () => {
  const edges = (text: Record<string, string>) =>
    new Map(Object.entries(text).map(([from, to]) => [from, to.split('').filter(Boolean)]));
  const check = (saved: Record<string, string>, agent: string, wanted: string) =>
    checkDelegates(
      edges(saved),
      agent,
      wanted.split('').map((agentId) => ({ agentId, pointer: `/${agentId}` })),
    ).map(({ pointer, message }) => `${pointer} ${message}`);

  it('may be any agents of the project that do not lead back', () => {
    expect(check({ a: '', b: 'd', c: 'd', d: '' }, 'a', 'bcd')).to.deep.equal([]);
  });

  it('are there', () => {
    expect(check({ a: '' }, 'a', 'x')).to.deep.equal(['/x is no agent of this project']);
  });

  it('lead back to it neither at once nor in the end', () => {
    expect(check({ a: '' }, 'a', 'a')).to.deep.equal(['/a is the agent itself']);
    expect(check({ a: '', b: 'c', c: 'a' }, 'a', 'b')).to.deep.equal(['/b delegates back to this agent']);
  });

  it('make a chain of three steps at most, those above it counted', () => {
    const tooDeep = 'makes a delegation of more than 3 steps';
    expect(check({ a: '', b: 'c', c: 'd', d: '' }, 'a', 'b')).to.deep.equal([]);
    expect(check({ a: '', b: 'c', c: 'd', d: 'e', e: '' }, 'a', 'b')).to.deep.equal([`/b ${tooDeep}`]);
    expect(check({ y: 'z', z: 'a', a: '', b: 'c', c: '' }, 'a', 'b')).to.deep.equal([`/b ${tooDeep}`]);
    expect(check({ z: 'a', a: '', b: 'c', c: '' }, 'a', 'b')).to.deep.equal([]);
  });

  describe('over HTTP', () => {
    const app = useInProcess();
    const to = (agentId: string) => demoAgent([{ type: 'delegate', name: 'other', agentId }]);

    it('are refused by one of two saves at once that would make a cycle together', async () => {
      const user = await app.newUser();
      const path = `/projects/${await app.newProject({ [user.id]: 'editor' })}/agents/v2`;
      for (let round = 0; round < 10; round += 1) {
        const [one, two] = await Promise.all(
          [1, 2].map(async () => (await user.http.expect(201, path, { method: 'POST', body: demoAgent() })).json()),
        );
        const answers = await Promise.all([
          user.http.put(`${path}/${one!.id}`, to(String(two!.id))),
          user.http.put(`${path}/${two!.id}`, to(String(one!.id))),
        ]);
        expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 400]);
        const refused = answers.find(({ status }) => status === 400)!.json<{ errors: unknown }>();
        expect(refused.errors).to.deep.equal([
          { pointer: '/config/tools/0/agentId', message: 'delegates back to this agent' },
        ]);
      }
    });

    it('are refused from another project, as are its credentials', async () => {
      const user = await app.newUser();
      const [here, there] = [
        await app.newProject({ [user.id]: 'editor' }),
        await app.newProject({ [user.id]: 'editor' }),
      ];
      const agent = await user.http.post(`/projects/${there}/agents/v2`, demoAgent());
      const refused = await user.http.post(`/projects/${here}/agents/v2`, to(String(agent.json().id)));
      expect(refused.status).to.equal(400);
      const credential = await user.http.post(`/projects/${there}/credentials`, {
        name: 'key',
        data: { apiKey: 'sk-1' },
      });
      const model = { provider: 'openai', model: 'm', credentialId: credential.json().id };
      const foreign = await user.http.post(`/projects/${here}/agents/v2`, {
        name: 'x',
        config: { instructions: '', model },
      });
      expect(foreign.status).to.equal(400);
      expect(foreign.json().errors).to.deep.equal([
        { pointer: '/config/model/credentialId', message: 'is no credential of this project' },
      ]);
    });

    it('are kept in lower case, whatever case a request has', async () => {
      const user = await app.newUser();
      const path = `/projects/${await app.newProject({ [user.id]: 'editor' })}/agents/v2`
        .toUpperCase()
        .replace(/^.PROJECTS/, '/projects')
        .replace('/AGENTS/V2', '/agents/v2');
      const target = (await user.http.post(path, demoAgent())).json();
      const saved = await user.http.post(path, to(String(target.id).toUpperCase()));
      expect(saved.status, saved.text).to.equal(201);
      expect(saved.text).to.contain(String(target.id));
    });
  });
});
