import { readCredential } from '@turnkeep/shared/agents/credentials';
import { readDelegates } from '@turnkeep/shared/agents/read-delegates';
import { type HistoryItem, readHistory } from '@turnkeep/shared/chat/history';
import { type Answer, readAnswers } from '@turnkeep/shared/chat/resume';
import type { AgentModel } from '@turnkeep/shared/contract/agent';
import type { Query } from '@turnkeep/shared/db/database';
import { UnsealError } from '@turnkeep/shared/secrets/seal';
import type { ModelMessage } from 'ai';
import type { LoopHost } from './agent-loop.js';
import { type BytesSource, loadPatiently } from './attachment-bytes.js';
import { type Delegates, readCheckpoint } from './checkpoint.js';
import { type Frame, newFrame } from './frame.js';
import type { RunningTurn } from './running-turn.js';
import type { Egress } from './runtime/egress.js';
import { TurnFailure } from './runtime/failure.js';
import { buildHistory, type HistoryEntry } from './runtime/history.js';
import { acceptsFile, createModel, providerKey, type TurnModel } from './runtime/model.js';

/** How a run begins: anew with a message, or from the checkpoint of a suspended one. */
export interface RunStart {
  root: Frame;
  delegates: Delegates;
  steps: number;
  isNew: boolean;
  answers: Map<string, Answer>;
}

/**
 * Loads what a turn begins with. A new run takes the configurations of the agents that it can delegate to as they are now; a
 * continuation has its own in the checkpoint.
 * @throws TurnFailure `checkpoint_unreadable`
 */
export async function startRun(source: BytesSource, turn: RunningTurn): Promise<RunStart> {
  const { db } = source;
  const { checkpoint, config, session } = turn.claimed;
  if (checkpoint) {
    const state = readCheckpoint(checkpoint.version, checkpoint.state);
    return { ...state, isNew: false, answers: await readAnswers(db, checkpoint.checkpointId) };
  }
  const [messages, delegates] = await Promise.all([
    loadContext(source, turn),
    readDelegates(db, session.projectId, config),
  ]);
  return { root: newFrame([], config, messages), delegates, steps: 0, isNew: true, answers: new Map() };
}

/** The tools of a frame's MCP servers, listed once when it begins. */
export async function listServers(host: Pick<LoopHost, 'mcp' | 'turn'>, frame: Frame): Promise<void> {
  const servers = frame.config.tools.filter((tool) => tool.type === 'mcp');
  if (servers.length === 0) return;
  const others = frame.config.tools.filter((tool) => tool.type !== 'mcp').map((tool) => tool.name);
  const listing = await host.mcp.list(servers, host.turn.signal, others);
  frame.mcp = listing.tools;
  frame.notes = listing.notes;
}

/** What the model is told before its first request of a turn: the session so far, and the message that the turn starts with. */
async function loadContext(source: BytesSource, turn: RunningTurn): Promise<ModelMessage[]> {
  const { config } = turn.claimed;
  const items = await readHistory(source.db, turn.owner.sessionId, turn.owner.executionNumber);
  return buildHistory(toEntries(source, turn, items), {
    providerKey: providerKey(config.model),
    maxToolOutputChars: config.limits.maxToolOutputChars,
    acceptsFile: (mimeType) => acceptsFile(config.model.provider, mimeType),
  });
}

/** User messages that were steered in, as the model gets them. */
export async function steeredContext(
  source: BytesSource,
  turn: RunningTurn,
  messages: { text: string; attachments: Extract<HistoryItem, { type: 'user' }>['attachments'] }[],
): Promise<ModelMessage[]> {
  const { config } = turn.claimed;
  const items = messages.map(({ text, attachments }) => ({ type: 'user' as const, text, attachments }));
  return buildHistory(toEntries(source, turn, items), {
    providerKey: providerKey(config.model),
    maxToolOutputChars: config.limits.maxToolOutputChars,
    acceptsFile: (mimeType) => acceptsFile(config.model.provider, mimeType),
  });
}

/** Pieces of one text, as the record's flushes cut it, become one text again; attachments are read when they are needed. */
function toEntries(source: BytesSource, turn: RunningTurn, items: HistoryItem[]): HistoryEntry[] {
  const entries: HistoryEntry[] = [];
  let block: string | null = null;
  for (const item of items) {
    const last = entries.at(-1);
    if (item.type === 'text' && last?.type === 'text' && item.block === block) last.text += item.text;
    else if (item.type === 'user') entries.push(withBytes(source, turn, item));
    else entries.push(item.type === 'text' ? { type: 'text', text: item.text } : item);
    block = item.type === 'text' ? item.block : null;
  }
  return entries;
}

function withBytes(
  source: BytesSource,
  turn: RunningTurn,
  { text, attachments }: Extract<HistoryItem, { type: 'user' }>,
): HistoryEntry {
  return {
    type: 'user',
    text,
    attachments: attachments.map(({ attachmentId, fileName, mimeType, sizeBytes }) => ({
      fileName,
      mimeType,
      sizeBytes,
      load: () => loadPatiently(source, turn, attachmentId),
    })),
  };
}

/**
 * The model of a turn, its credential read afresh.
 * @throws TurnFailure `model_refused` where the credential is gone or cannot be opened
 */
export async function openModel(
  db: Query,
  encryptionKey: Buffer,
  egress: Egress,
  projectId: string,
  config: AgentModel,
): Promise<TurnModel> {
  const access = { fetch: egress.fetch };
  if (config.credentialId === undefined) return createModel(config, access);
  const data = await readCredential(db, encryptionKey, projectId, config.credentialId).catch((error: unknown) => {
    if (!(error instanceof UnsealError)) throw error;
    throw new TurnFailure('model_refused', "The agent's credential cannot be opened. Store it again.", {
      cause: error,
    });
  });
  if (!data) throw new TurnFailure('model_refused', "The agent's credential was deleted. Give the agent another one.");
  return createModel(config, { ...access, apiKey: data.apiKey });
}
