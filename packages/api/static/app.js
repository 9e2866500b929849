import { json, Refused } from './http.js';
import { Session } from './session.js';

const byId = (id) => document.getElementById(id);
const session = new Session({
  transcript: byId('transcript'),
  cards: byId('cards'),
  pending: byId('pending'),
  problem: byId('problem'),
  composer: byId('composer'),
  message: byId('message'),
  send: byId('send'),
  stop: byId('stop'),
  onChange: () => listSessions().catch(report),
});

/** Where one is stands in the fragment, so a reload comes back to it: `#/project/agent/session`. */
function place() {
  const [, projectId, agentId, threadId] = location.hash.split('/');
  return { projectId, agentId, threadId: threadId || null };
}

function go(projectId, agentId, threadId) {
  history.replaceState(null, '', `#/${projectId}/${agentId}${threadId ? `/${threadId}` : ''}`);
}

async function start() {
  const code = /^#(lk_.+)$/.exec(location.hash)?.[1];
  if (code !== undefined) {
    // The code goes from the address before anything else: it must not stay in the history.
    history.replaceState(null, '', location.pathname + location.search);
    return signIn(code);
  }
  try {
    await enter(await json('GET', 'me'));
  } catch (error) {
    if (error instanceof Refused && error.status === 401) showSignIn('');
    else showSignIn(error.message);
  }
}

async function signIn(token) {
  try {
    await enter(await json('POST', 'auth/session', { body: { token } }));
  } catch (error) {
    showSignIn(error.message);
  }
}

function showSignIn(problem) {
  byId('chat').hidden = true;
  byId('sign-out').hidden = true;
  byId('who').textContent = '';
  byId('sign-in').hidden = false;
  byId('sign-in-problem').textContent = problem;
  byId('token').focus();
}

async function enter(me) {
  byId('token').value = '';
  byId('sign-in').hidden = true;
  byId('sign-out').hidden = false;
  byId('who').textContent = me.instanceAdmin ? 'Instance admin' : me.name;
  if (me.instanceAdmin) return;
  byId('chat').hidden = false;
  const { projects } = await json('GET', 'projects');
  fill(byId('project'), projects, place().projectId);
  await chooseProject(place().agentId, place().threadId).catch(report);
  session.listen();
}

function fill(select, items, chosen) {
  select.replaceChildren(...items.map(({ id, name }) => new Option(name, id, false, id === chosen)));
}

async function chooseProject(agentId, threadId) {
  const projectId = byId('project').value;
  const found = projectId === '' ? { agents: [] } : await json('GET', `projects/${projectId}/agents/v2`);
  fill(byId('agent'), found.agents, agentId);
  await chooseSession(threadId);
}

async function chooseSession(threadId) {
  const projectId = byId('project').value;
  const agentId = byId('agent').value;
  byId('send').disabled = agentId === '';
  if (agentId === '') {
    byId('sessions').replaceChildren();
    byId('problem').textContent = projectId === '' ? 'You are in no project yet.' : 'This project has no agent yet.';
    return session.close();
  }
  go(projectId, agentId, threadId);
  await session.open(`projects/${projectId}/agents/v2/${agentId}/chat`, threadId);
  await listSessions();
}

async function listSessions() {
  const base = session.base;
  if (base === null) return;
  const { sessions } = await json('GET', base);
  if (session.base !== base) return;
  go(byId('project').value, byId('agent').value, session.threadId);
  byId('sessions').replaceChildren(...sessions.map(sessionRow));
}

function sessionRow({ id, title, status }) {
  const button = document.createElement('button');
  button.type = 'button';
  button.setAttribute('aria-current', String(id === session.threadId));
  button.append(title || 'Untitled');
  if (status !== 'idle') {
    const small = document.createElement('small');
    small.textContent = ` ${status}`;
    button.append(small);
  }
  button.addEventListener('click', () => chooseSession(id).catch(report));
  const row = document.createElement('li');
  row.append(button);
  return row;
}

function report(error) {
  if (error instanceof Refused && error.status === 401) showSignIn('Sign in again.');
  else byId('problem').textContent = error.message;
}

byId('sign-in').addEventListener('submit', (event) => {
  event.preventDefault();
  signIn(byId('token').value.trim());
});
byId('sign-out').addEventListener('click', async () => {
  await json('DELETE', 'auth/session').catch(() => {});
  history.replaceState(null, '', location.pathname + location.search);
  location.reload();
});
byId('project').addEventListener('change', () => chooseProject(null, null).catch(report));
byId('agent').addEventListener('change', () => chooseSession(null).catch(report));
byId('new-session').addEventListener('click', () => {
  chooseSession(null).catch(report);
  byId('message').focus();
});
// A link that is opened in a tab that is here already changes the fragment alone.
addEventListener('hashchange', () => {
  if (location.hash.startsWith('#lk_')) start();
});

start();
