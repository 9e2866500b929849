import type { Usage } from '../contract/events.js';
import type { ExecutionError } from '../contract/execution.js';
import type { Database } from '../db/database.js';
import type { SessionRef } from './refs.js';
import { refreshSession } from './session-status.js';
import { endCalls } from './settle.js';
import { returnSteers } from './steers.js';

/**
 * The number of `done` of an execution that somebody else than its worker finalises. It lies above every number that a
 * worker can have given out, also those that nobody recorded.
 */
export const SEALED_N = 2 ** 49;

/** What the user is told of an interrupted turn. */
export const INTERRUPTED: ExecutionError = {
  code: 'interrupted',
  message: 'The turn was interrupted. What it had said so far is kept; send the message again to go on.',
};

export interface Interrupted {
  session: SessionRef;
  usage: Usage | null;
  /** True where the session has something to start now. */
  ready: boolean;
}

/**
 * Interrupts a running execution whose lease is over (contract, section 9.5): it keeps the output recorded so far, and no
 * call is made a second time for it. What its worker still writes finds the fence closed.
 * @returns null where there is nothing to interrupt: it was settled, or its lease was prolonged
 */
export async function interruptExpired(
  db: Database,
  sessionId: string,
  executionId: string,
): Promise<Interrupted | null> {
  return db.session(sessionId, async (tx, session) => {
    const [row] = await tx.query<{ input: number | null; output: number }>(
      `update executions set status = 'interrupted', error_code = $2, error_message = $3, steerable = false,
         open_blocks = '[]', finished_at = clock_timestamp(), final_n = $4
       where id = $1 and status = 'running' and lease_expires_at <= clock_timestamp()
       returning input_tokens as input, output_tokens as output`,
      [executionId, INTERRUPTED.code, INTERRUPTED.message, SEALED_N],
    );
    if (!row || !session) return null;
    await endCalls(tx, executionId, 'interrupted');
    await returnSteers(tx, executionId);
    const { ready } = await refreshSession(tx, sessionId);
    return {
      ready,
      session: { sessionId, projectId: session.project_id, agentId: session.agent_id, userId: session.user_id },
      usage: row.input === null ? null : { inputTokens: row.input, outputTokens: row.output },
    };
  });
}
