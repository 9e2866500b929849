/** The routes of agents, credentials, projects, users and signing in: sections 2 and 3; and those of operators: section 1. */
import Type from 'typebox';
import * as access from './access.js';
import * as agent from './agent.js';
import { answer, created, grouped, ok, operations, type Route } from './route.js';

const project = '/projects/:projectId';
const agents = `${project}/agents/v2`;
const oneAgent = `${agents}/:agentId`;

const building: Route[] = grouped('Agents', 3, [
  {
    method: 'POST',
    path: agents,
    auth: 'agent:write',
    summary: 'Creates an agent.',
    request: agent.CreateAgent,
    responses: created(agent.AgentView),
  },
  { method: 'GET', path: agents, auth: 'agent:read', summary: 'Lists the agents.', responses: ok(agent.AgentList) },
  { method: 'GET', path: oneAgent, auth: 'agent:read', summary: 'Reads an agent.', responses: ok(agent.AgentView) },
  {
    method: 'PUT',
    path: oneAgent,
    auth: 'agent:write',
    summary: "Replaces an agent's name and configuration, from the next turn on.",
    request: agent.CreateAgent,
    responses: ok(agent.AgentView),
  },
  {
    method: 'DELETE',
    path: oneAgent,
    auth: 'agent:write',
    summary:
      'Deletes an agent: its running executions are cancelled, its checkpoints closed, its pending messages removed.',
    responses: ok(access.Deleted),
  },
  {
    method: 'POST',
    path: `${project}/credentials`,
    auth: 'agent:write',
    summary: 'Stores a credential, encrypted.',
    request: access.CreateCredential,
    responses: created(access.CredentialView),
  },
  {
    method: 'GET',
    path: `${project}/credentials`,
    auth: 'agent:read',
    summary: 'Lists the credentials, without their secrets.',
    responses: ok(access.CredentialList),
  },
  {
    method: 'DELETE',
    path: `${project}/credentials/:credentialId`,
    auth: 'agent:write',
    summary: 'Deletes a credential.',
    responses: ok(access.Deleted),
  },
]);

const managing: Route[] = grouped('Projects', 2, [
  {
    method: 'POST',
    path: '/projects',
    auth: 'user',
    summary: 'Creates a project; the caller becomes its admin.',
    request: access.CreateProject,
    responses: created(access.ProjectView),
  },
  {
    method: 'GET',
    path: '/projects',
    auth: 'user',
    summary: "Lists the caller's projects, with their role in each.",
    responses: ok(access.ProjectList),
  },
  {
    method: 'GET',
    path: `${project}/members`,
    auth: 'project:manage',
    summary: 'Lists the members of a project.',
    responses: ok(access.MemberList),
  },
  {
    method: 'PUT',
    path: `${project}/members/:userId`,
    auth: 'project:manage',
    summary: 'Adds a member, or changes their role.',
    request: access.SetMember,
    responses: ok(access.MemberView),
    problems: ['last_admin'],
  },
  {
    method: 'DELETE',
    path: `${project}/members/:userId`,
    auth: 'project:manage',
    summary: 'Removes a member.',
    responses: ok(access.Removed),
    problems: ['last_admin'],
  },
]);

const signingIn: Route[] = grouped('Signing in', 2, [
  {
    method: 'POST',
    path: '/auth/session',
    auth: 'none',
    summary: 'Signs a browser in: sets the session cookie.',
    request: access.SignIn,
    responses: ok(access.Me, 'Signed in; `Set-Cookie` holds the session.'),
  },
  {
    method: 'DELETE',
    path: '/auth/session',
    auth: 'any',
    summary: 'Signs the browser out: ends the session of the cookie.',
    responses: ok(access.Deleted),
  },
  { method: 'GET', path: '/me', auth: 'any', summary: 'Says who is signed in.', responses: ok(access.Me) },
]);

const administering: Route[] = grouped('Users', 2, [
  {
    method: 'POST',
    path: '/admin/users',
    auth: 'admin',
    summary: 'Creates a user.',
    request: access.CreateUser,
    responses: created(access.UserView),
  },
  { method: 'GET', path: '/admin/users', auth: 'admin', summary: 'Lists the users.', responses: ok(access.UserList) },
  {
    method: 'POST',
    path: '/admin/users/:id/tokens',
    auth: 'admin',
    summary: 'Makes a token for a user.',
    request: access.CreateToken,
    responses: created(access.CreatedToken),
  },
  {
    method: 'GET',
    path: '/admin/users/:id/tokens',
    auth: 'admin',
    summary: "Lists a user's tokens, without their secrets.",
    responses: ok(access.TokenList),
  },
  {
    method: 'DELETE',
    path: '/admin/users/:id/tokens/:tokenId',
    auth: 'admin',
    summary: "Revokes a token; that user's streams end within 5 s.",
    responses: ok(access.Deleted),
  },
  {
    method: 'POST',
    path: '/admin/users/:id/link',
    auth: 'admin',
    summary: 'Makes a link that signs its reader in as the user, once, within 10 minutes.',
    responses: created(access.SignInLink),
  },
]);

const health = (...statuses: [string, ...string[]]) => Type.Object({ status: Type.Enum(statuses) });

const operating: Route[] = grouped(operations, 1, [
  {
    method: 'GET',
    path: '/healthz',
    auth: 'none',
    summary: 'Says that the process runs.',
    responses: ok(health('ok')),
  },
  {
    method: 'GET',
    path: '/readyz',
    auth: 'none',
    summary: 'Says whether the process can serve. `degraded`: Redis is away, and nothing fails for it.',
    responses: [
      answer(200, health('ok', 'degraded'), 'Ready.'),
      answer(503, health('unavailable'), 'Postgres is away, or the process is stopping.'),
    ],
  },
  {
    method: 'GET',
    path: '/metrics',
    auth: 'none',
    summary: 'Metrics in the text format of Prometheus.',
    responses: [{ status: 200, response: { description: 'Metrics.', contentType: 'text/plain' } }],
  },
]);

export const manageRoutes: Route[] = [...building, ...managing, ...signingIn, ...administering, ...operating];
