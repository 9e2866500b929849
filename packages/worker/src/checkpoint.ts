import { CHECKPOINT_VERSION } from '@turnkeep/shared/chat/checkpoint-version';
import type { AgentConfig } from '@turnkeep/shared/contract/agent';
import type { BatchCall, Frame } from './frame.js';
import { TurnFailure } from './runtime/failure.js';

/** The configurations of the agents that a run can delegate to, by id, as they were when the run began. */
export type Delegates = Record<string, { name: string; config: AgentConfig }>;

/** What a suspended run continues from. */
export interface CheckpointState {
  root: Frame;
  delegates: Delegates;
  /** Model requests that the run has made. */
  steps: number;
}

/** A checkpoint as bytes, in the newest version. */
export function writeCheckpoint(state: CheckpointState): Buffer {
  return Buffer.from(JSON.stringify(state));
}

/**
 * Reads a checkpoint of any version that was ever written. A new version adds a case here that turns the one before into
 * it; a fixture of each stays in the tests.
 * @throws TurnFailure `checkpoint_unreadable`
 */
export function readCheckpoint(version: number, bytes: Buffer): CheckpointState {
  try {
    const state = JSON.parse(bytes.toString('utf8')) as CheckpointState;
    if (version === CHECKPOINT_VERSION && isState(state)) return state;
  } catch {
    // Falls through: what is no JSON is as unreadable as what is another version's.
  }
  const message = 'The saved state of this turn cannot be read any more. Send the message again.';
  throw new TurnFailure('checkpoint_unreadable', message);
}

function isState({ root, delegates, steps }: CheckpointState): boolean {
  return isFrame(root) && typeof delegates === 'object' && delegates !== null && typeof steps === 'number';
}

/** A frame that waits: each of its calls has a result, waits, or holds a delegate that does. */
function isFrame(frame: Frame | undefined): boolean {
  const { path, messages, config, batch, mcp, notes } = frame ?? {};
  const lists = [path, messages, mcp, notes, config?.tools, batch?.calls];
  return lists.every(Array.isArray) && batch?.calls.every(isCall) === true;
}

function isCall({ callId, toolName, child }: BatchCall): boolean {
  return typeof callId === 'string' && typeof toolName === 'string' && (child === null || isFrame(child));
}
