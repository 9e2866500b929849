import type { SessionRef } from '@turnkeep/shared/chat/refs';
import { findSession } from '@turnkeep/shared/chat/sessions';
import type { Scope } from '@turnkeep/shared/contract/access';
import type { Query } from '@turnkeep/shared/db/database';
import type { Ctx } from './context.js';
import type { AgentAccess, Guard } from './guard.js';
import { found, notFound, pathId } from './not-found.js';

/** A request about a session of the caller's own. */
export interface SessionAccess {
  access: AgentAccess;
  session: SessionRef;
}

/** Checks the scope, and that the path's session is there and the caller's (contract, section 2): 401, 404, 403, 404. */
export async function ownSession(db: Query, guard: Guard, ctx: Ctx, scope: Scope): Promise<SessionAccess> {
  const access = await guard.agent(ctx, scope);
  const session = sessionRef(access, found(pathId(ctx.params?.threadId)));
  if ((await findSession(db, session)) !== 'own') throw notFound();
  return { access, session };
}

/** A session of the caller's at the path's agent, by its id. */
export function sessionRef({ projectId, agent, userId }: AgentAccess, sessionId: string): SessionRef {
  return { sessionId, projectId, agentId: agent.id, userId };
}
