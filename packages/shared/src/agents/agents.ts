import type { AgentConfig, AgentView } from '../contract/agent.js';
import type { Query } from '../db/database.js';

interface Row {
  id: string;
  name: string;
  config: AgentConfig;
  created_at: Date;
  updated_at: Date;
}

/** The columns that `viewOf` reads. */
export const AGENT_COLUMNS = 'id, name, config, created_at, updated_at';

/** The agents of a project that are not deleted, oldest first (contract, section 3). */
export async function listAgents(db: Query, projectId: string): Promise<AgentView[]> {
  const rows = await db.query<Row>(
    `select ${AGENT_COLUMNS} from agents where project_id = $1 and deleted_at is null order by created_at, id`,
    [projectId],
  );
  return rows.map(viewOf);
}

/** One agent, or null where it is not there, deleted, or in another project. */
export async function findAgent(db: Query, projectId: string, agentId: string): Promise<AgentView | null> {
  const [row] = await db.query<Row>(
    `select ${AGENT_COLUMNS} from agents where id = $2 and project_id = $1 and deleted_at is null`,
    [projectId, agentId],
  );
  return row ? viewOf(row) : null;
}

/** A row of `AGENT_COLUMNS` as the contract shows it. */
export function viewOf(row: Row): AgentView {
  return {
    id: row.id,
    name: row.name,
    config: row.config,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  };
}
