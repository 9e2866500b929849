import type { AgentConfig } from '../contract/agent.js';
import type { Query } from '../db/database.js';

/** The agents that a run of this configuration can delegate to, directly or through others, by id, as they are now. */
export async function readDelegates(
  db: Query,
  projectId: string,
  config: AgentConfig,
): Promise<Record<string, { name: string; config: AgentConfig }>> {
  const found: Record<string, { name: string; config: AgentConfig }> = {};
  let wanted = delegatesOf(config);
  while (wanted.length > 0) {
    const rows = await db.query<{ id: string; name: string; config: AgentConfig }>(
      'select id, name, config from agents where id = any($1) and project_id = $2 and deleted_at is null',
      [wanted, projectId],
    );
    for (const { id, ...agent } of rows) found[id] = agent;
    wanted = rows.flatMap((row) => delegatesOf(row.config)).filter((id) => !(id in found));
  }
  return found;
}

function delegatesOf(config: AgentConfig): string[] {
  return config.tools.flatMap((tool) => (tool.type === 'delegate' ? [tool.agentId] : []));
}
