import { lockProject } from '../access/lock-project.js';
import { type AgentConfig, type AgentView, type CreateAgent, withDefaults } from '../contract/agent.js';
import { checkAgentConfig } from '../contract/check-agent.js';
import { newId } from '../contract/ids.js';
import { type FieldError, ProblemError } from '../contract/problems.js';
import type { Database, Query } from '../db/database.js';
import { AGENT_COLUMNS, viewOf } from './agents.js';
import { checkDelegates } from './delegation.js';

const INSERT = `insert into agents (id, project_id, name, config) values ($1, $2, $3, $4) returning ${AGENT_COLUMNS}`;
const UPDATE = `update agents set name = $3, config = $4, updated_at = now()
  where id = $1 and project_id = $2 and deleted_at is null returning ${AGENT_COLUMNS}`;

/**
 * Creates an agent with every default filled in (contract, section 3).
 * @throws ProblemError `invalid_request`, with pointers into the request, where the configuration contradicts itself, names
 *   a credential or delegate that is not in the project, or makes a cycle or a chain of delegates longer than three
 */
export async function createAgent(db: Database, projectId: string, request: CreateAgent): Promise<AgentView> {
  const view = await save(db, projectId, newId(), request, INSERT);
  if (view === null) throw new Error('an insert answered no row');
  return view;
}

/**
 * Replaces an agent's name and configuration, from its next turn on; null where it is not there. The same errors.
 */
export async function replaceAgent(
  db: Database,
  projectId: string,
  agentId: string,
  request: CreateAgent,
): Promise<AgentView | null> {
  return save(db, projectId, agentId, request, UPDATE);
}

async function save(
  db: Database,
  projectId: string,
  agentId: string,
  request: CreateAgent,
  statement: string,
): Promise<AgentView | null> {
  refuse(checkAgentConfig(request.config));
  const config = lowerCased(withDefaults(request.config));
  return db.transaction(async (tx) => {
    // Two saves of a project come one after the other: each alone could be right and both together a cycle.
    await lockProject(tx, projectId);
    refuse([
      ...(await checkCredential(tx, projectId, config)),
      ...(await checkDelegation(tx, projectId, agentId, config)),
    ]);
    const [row] = await tx.query<Parameters<typeof viewOf>[0]>(statement, [
      agentId,
      projectId,
      request.name,
      JSON.stringify(config),
    ]);
    return row ? viewOf(row) : null;
  });
}

/** Throws where there are errors. Their pointers are relative to the configuration. */
function refuse(errors: readonly FieldError[]): void {
  if (errors.length === 0) return;
  const placed = errors.slice(0, 20).map((error) => ({ ...error, pointer: `/config${error.pointer}` }));
  throw new ProblemError('invalid_request', 'The body is not valid.', { errors: placed });
}

/** A request may write ids in upper case; everything stored is compared as text later. */
function lowerCased(config: AgentConfig): AgentConfig {
  const { credentialId } = config.model;
  return {
    ...config,
    model: credentialId === undefined ? config.model : { ...config.model, credentialId: credentialId.toLowerCase() },
    tools: config.tools.map((tool) =>
      tool.type === 'delegate' ? { ...tool, agentId: tool.agentId.toLowerCase() } : tool,
    ),
  };
}

async function checkCredential(tx: Query, projectId: string, { model }: AgentConfig): Promise<FieldError[]> {
  if (model.credentialId === undefined) return [];
  const rows = await tx.query('select from credentials where id = $1 and project_id = $2', [
    model.credentialId,
    projectId,
  ]);
  return rows.length > 0 ? [] : [{ pointer: '/model/credentialId', message: 'is no credential of this project' }];
}

async function checkDelegation(
  tx: Query,
  projectId: string,
  agentId: string,
  { tools }: AgentConfig,
): Promise<FieldError[]> {
  const wanted = tools.flatMap((tool, index) =>
    tool.type === 'delegate' ? [{ agentId: tool.agentId, pointer: `/tools/${index}/agentId` }] : [],
  );
  if (wanted.length === 0) return [];
  const rows = await tx.query<{ id: string; delegates: string[] }>(
    `select id, array(select t->>'agentId' from jsonb_array_elements(config->'tools') t where t->>'type' = 'delegate') as delegates
     from agents where project_id = $1 and deleted_at is null`,
    [projectId],
  );
  // A delegate that was deleted since leaves its id in the configurations that name it.
  const there = new Set(rows.map(({ id }) => id));
  const saved = new Map(rows.map(({ id, delegates }) => [id, delegates.filter((each) => there.has(each))]));
  return checkDelegates(saved, agentId, wanted);
}
