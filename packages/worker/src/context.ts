import { readCredential } from '@turnkeep/shared/agents/credentials';
import { readAttachmentBytes } from '@turnkeep/shared/chat/attachments';
import { type HistoryItem, readHistory } from '@turnkeep/shared/chat/history';
import type { AgentModel } from '@turnkeep/shared/contract/agent';
import type { Database, Query } from '@turnkeep/shared/db/database';
import { UnsealError } from '@turnkeep/shared/secrets/seal';
import type { ModelMessage } from 'ai';
import type { RunningTurn } from './running-turn.js';
import type { Egress } from './runtime/egress.js';
import { TurnFailure } from './runtime/failure.js';
import { buildHistory, type HistoryEntry } from './runtime/history.js';
import { acceptsFile, createModel, providerKey, type TurnModel } from './runtime/model.js';

/** What the model is told before its first request of a turn: the session so far, and the message that the turn starts with. */
export async function loadContext(db: Database, turn: RunningTurn): Promise<ModelMessage[]> {
  const { config } = turn.claimed;
  const items = await readHistory(db, turn.owner.sessionId, turn.owner.executionNumber);
  return buildHistory(toEntries(db, items), {
    providerKey: providerKey(config.model),
    maxToolOutputChars: config.limits.maxToolOutputChars,
    acceptsFile: (mimeType) => acceptsFile(config.model.provider, mimeType),
  });
}

/** User messages that were steered in, as the model gets them. */
export async function steeredContext(
  db: Query,
  turn: RunningTurn,
  messages: { text: string; attachments: Extract<HistoryItem, { type: 'user' }>['attachments'] }[],
): Promise<ModelMessage[]> {
  const { config } = turn.claimed;
  const items = messages.map(({ text, attachments }) => ({ type: 'user' as const, text, attachments }));
  return buildHistory(toEntries(db, items), {
    providerKey: providerKey(config.model),
    maxToolOutputChars: config.limits.maxToolOutputChars,
    acceptsFile: (mimeType) => acceptsFile(config.model.provider, mimeType),
  });
}

/** Pieces of one text, as the record's flushes cut it, become one text again; attachments are read when they are needed. */
function toEntries(db: Query, items: HistoryItem[]): HistoryEntry[] {
  const entries: HistoryEntry[] = [];
  let block: string | null = null;
  for (const item of items) {
    const last = entries.at(-1);
    if (item.type === 'text' && last?.type === 'text' && item.block === block) last.text += item.text;
    else if (item.type === 'user') entries.push(withBytes(db, item));
    else entries.push(item.type === 'text' ? { type: 'text', text: item.text } : item);
    block = item.type === 'text' ? item.block : null;
  }
  return entries;
}

function withBytes(db: Query, { text, attachments }: Extract<HistoryItem, { type: 'user' }>): HistoryEntry {
  return {
    type: 'user',
    text,
    attachments: attachments.map(({ attachmentId, fileName, mimeType, sizeBytes }) => ({
      fileName,
      mimeType,
      sizeBytes,
      load: () => readAttachmentBytes(db, attachmentId),
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
