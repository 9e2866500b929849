import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { inState, writePrivateFile } from '../setup/paths.mjs';
import { apiClient } from './api-client.mjs';
import { assistant, names, researcher } from './demo-agents.mjs';

const file = inState('demo.json');

/**
 * Makes the demo user, project and agents, or finds those of an earlier start; brings the agents up to date with
 * the environment. All through the HTTP API, as an administrator would.
 * @param {object} options
 * @param {string} options.baseUrl of a main; kept as `url` in `.turnkeep/demo.json`
 * @param {string} options.adminToken
 * @param {{model: object, apiKey?: string}} options.demoModel see `demoModel`
 * @param {string} options.toolsUrl see `startDemoTools`
 * @returns {Promise<{newLink: () => Promise<string>}>} `newLink` makes a link that signs a browser in once
 */
export async function prepareDemo({ baseUrl, adminToken, demoModel, toolsUrl }) {
  const admin = apiClient(baseUrl, adminToken);
  const demo = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
  const save = () => writePrivateFile(file, `${JSON.stringify(demo, null, 2)}\n`);
  await findUser(admin, demo);
  demo.url = baseUrl; // For whoever reads the file: the port is another one where the wanted one was taken.
  save();
  const user = apiClient(baseUrl, demo.token);
  await findProject(user, demo);
  save();
  await findAgents(user, demo, demoModel, toolsUrl);
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

async function findAgents(user, demo, { model, apiKey }, toolsUrl) {
  const agents = `/projects/${demo.projectId}/agents/v2`;
  const { agents: all } = await user('GET', agents);
  const find = (id, name) => all.find((agent) => agent.id === id) ?? all.find((agent) => agent.name === name);
  const there = {
    assistant: find(demo.agentId, names.assistant),
    researcher: find(demo.researcherId, names.researcher),
  };
  const isThere = there.assistant?.id === demo.agentId && there.researcher?.id === demo.researcherId;
  const fingerprint = () => hash([researcher(model, toolsUrl), assistant(model, toolsUrl, demo.researcherId), apiKey]);
  if (there.assistant && there.researcher && isThere && demo.fingerprint === fingerprint()) return;
  const oldCredentialId = demo.credentialId;
  demo.credentialId = apiKey ? await addCredential(user, demo.projectId, apiKey) : undefined;
  const withKey = { ...model, ...(demo.credentialId ? { credentialId: demo.credentialId } : {}) };
  const save = (agent, name, config) =>
    agent ? user('PUT', `${agents}/${agent.id}`, { name, config }) : user('POST', agents, { name, config });
  // The assistant is made first, so that it is the first in a list of agents; its helper has to be there to be named.
  const first = there.assistant ?? (await save(undefined, names.assistant, assistant(withKey, toolsUrl)));
  demo.researcherId = (await save(there.researcher, names.researcher, researcher(withKey, toolsUrl))).id;
  demo.agentId = (await save(first, names.assistant, assistant(withKey, toolsUrl, demo.researcherId))).id;
  demo.fingerprint = fingerprint();
  if (oldCredentialId)
    await user('DELETE', `/projects/${demo.projectId}/credentials/${oldCredentialId}`, undefined, [404]);
}

async function addCredential(user, projectId, apiKey) {
  return (await user('POST', `/projects/${projectId}/credentials`, { name: 'Key of the demo model', data: { apiKey } }))
    .id;
}

function hash(value) {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}
