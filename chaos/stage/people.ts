/** One user's way to one agent. */
export interface Seat {
  readonly token: string;
  /** The path of the agent's chat. */
  readonly path: string;
}

export interface People {
  readonly seats: readonly Seat[];
}

const USERS = 3;

/**
 * Makes the users of a run, a project in which all of them may chat, and its agents.
 * @param modelUrl of the model, and `toolsUrl` of the tools, with a slash at the end
 */
export async function settle(baseUrl: string, adminToken: string, modelUrl: string, toolsUrl: string): Promise<People> {
  const ask = async <T>(token: string, method: string, path: string, body: object): Promise<T> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const response = await fetch(baseUrl + path, { method, headers, body: JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
    return (text === '' ? {} : JSON.parse(text)) as T;
  };
  const newUser = async (name: string) => {
    const { id } = await ask<{ id: string }>(adminToken, 'POST', '/admin/users', {
      email: `${name}@example.org`,
      name,
    });
    const { token } = await ask<{ token: string }>(adminToken, 'POST', `/admin/users/${id}/tokens`, { name: 'chaos' });
    return { id, token };
  };
  const users = await Promise.all(Array.from({ length: USERS }, (_, index) => newUser(`user${index}`)));
  const [owner, ...others] = users;
  if (!owner) throw new Error('there are no users');
  const project = await ask<{ id: string }>(owner.token, 'POST', '/projects', { name: 'chaos' });
  for (const { id } of others) await ask(owner.token, 'PUT', `/projects/${project.id}/members/${id}`, { role: 'user' });
  const agents = `/projects/${project.id}/agents/v2`;
  const paths: string[] = [];
  for (const maxSteps of [20, 3]) {
    const { id } = await ask<{ id: string }>(owner.token, 'POST', agents, {
      name: 'agent',
      config: config(modelUrl, toolsUrl, maxSteps),
    });
    paths.push(`${agents}/${id}/chat`);
  }
  return { seats: users.flatMap(({ token }) => paths.map((path) => ({ token, path }))) };
}

function config(modelUrl: string, toolsUrl: string, maxSteps: number): object {
  const tool = (name: string, requireApproval: boolean) => ({
    type: 'http',
    name,
    description: `The tool ${name}`,
    inputSchema: { type: 'object' },
    method: 'POST',
    url: toolsUrl + name,
    requireApproval,
    timeoutMs: 30_000,
  });
  return {
    instructions: 'You follow the plan of the newest message.',
    model: { provider: 'openai-compatible', model: 'scripted', baseUrl: `${modelUrl}v1` },
    tools: [tool('look', false), tool('pay', true)],
    limits: { maxSteps, maxDurationMs: 600_000, maxToolOutputChars: 100_000 },
  };
}
