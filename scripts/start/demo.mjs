import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { inState, writePrivateFile } from '../setup/paths.mjs';
import { apiClient } from './api-client.mjs';

const file = inState('demo.json');
const agentName = 'Demo agent';

/**
 * Makes the demo user, project and agent, or finds those of an earlier start; brings the agent up to date with
 * the environment. All through the HTTP API, as an administrator would.
 * @param {object} options
 * @param {string} options.baseUrl of a main
 * @param {string} options.adminToken
 * @param {{model: object, apiKey?: string}} options.demoModel see `demoModel`
 * @param {string} options.weatherUrl
 * @returns {Promise<{newLink: () => Promise<string>}>} `newLink` makes a link that signs a browser in once
 */
export async function prepareDemo({ baseUrl, adminToken, demoModel, weatherUrl }) {
  const admin = apiClient(baseUrl, adminToken);
  const demo = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
  const save = () => writePrivateFile(file, `${JSON.stringify(demo, null, 2)}\n`);
  await findUser(admin, demo);
  save();
  const user = apiClient(baseUrl, demo.token);
  await findProject(user, demo);
  save();
  await findAgent(user, demo, demoModel, weatherUrl);
  save();
  return {
    newLink: async () => (await admin('POST', `/admin/users/${demo.userId}/link`)).url,
  };
}

async function findUser(admin, demo) {
  const { users } = await admin('GET', '/admin/users');
  if (!users.some(({ id }) => id === demo.userId)) {
    // The ids are of another database, or there are none yet. The user may still be there by its address.
    const email = 'demo@turnkeep.local';
    const known = users.find((user) => user.email === email);
    const { id } = known ?? (await admin('POST', '/admin/users', { email, name: 'Demo' }));
    for (const name of Object.keys(demo)) delete demo[name];
    demo.userId = id;
  }
  if (!demo.token || !(await admin.as(demo.token)('GET', '/me', undefined, [401])))
    demo.token = (await admin('POST', `/admin/users/${demo.userId}/tokens`, { name: 'npm start' })).token;
}

async function findProject(user, demo) {
  const { projects } = await user('GET', '/projects');
  const known = projects.find(({ id }) => id === demo.projectId) ?? projects.find(({ name }) => name === 'Demo');
  demo.projectId = (known ?? (await user('POST', '/projects', { name: 'Demo' }))).id;
}

async function findAgent(user, demo, { model, apiKey }, weatherUrl) {
  const agents = `/projects/${demo.projectId}/agents/v2`;
  const { agents: all } = await user('GET', agents);
  const there = all.find(({ id }) => id === demo.agentId) ?? all.find(({ name }) => name === agentName);
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([model, apiKey, weatherUrl]))
    .digest('hex');
  if (there && there.id === demo.agentId && demo.fingerprint === fingerprint) return;
  const oldCredentialId = demo.credentialId;
  demo.credentialId = apiKey ? await addCredential(user, demo.projectId, apiKey) : undefined;
  const body = { name: agentName, config: agentConfig(model, demo.credentialId, weatherUrl) };
  const saved = there ? await user('PUT', `${agents}/${there.id}`, body) : await user('POST', agents, body);
  demo.agentId = saved.id;
  demo.fingerprint = fingerprint;
  if (oldCredentialId)
    await user('DELETE', `/projects/${demo.projectId}/credentials/${oldCredentialId}`, undefined, [404]);
}

async function addCredential(user, projectId, apiKey) {
  return (await user('POST', `/projects/${projectId}/credentials`, { name: 'Key of the demo model', data: { apiKey } }))
    .id;
}

function agentConfig(model, credentialId, weatherUrl) {
  return {
    instructions:
      'You are a friendly assistant in a demo of Turnkeep. Answer briefly. Ask get_weather about the weather.',
    model: { ...model, ...(credentialId ? { credentialId } : {}) },
    tools: [
      {
        type: 'http',
        name: 'get_weather',
        description: 'The weather in a city now.',
        inputSchema: {
          type: 'object',
          properties: { city: { type: 'string', description: 'e.g. Lisbon' } },
          required: ['city'],
          additionalProperties: false,
        },
        method: 'POST',
        url: weatherUrl,
      },
    ],
  };
}
