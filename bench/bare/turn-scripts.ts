import { lookUp } from '@turnkeep/shared/access/look-up';
import { hashOf } from '@turnkeep/shared/access/secret';
import { acceptMessage } from '@turnkeep/shared/chat/accept';
import { claimNext } from '@turnkeep/shared/chat/claim';
import { type Batch, type Entry, type Owner, recordBatch } from '@turnkeep/shared/chat/record';
import { settleOrSteer } from '@turnkeep/shared/chat/settle';
import { newId } from '@turnkeep/shared/contract/ids';
import { Database } from '@turnkeep/shared/db/database';
import type { Chat } from '../../test/support/chat.js';
import { type Ids, type Prepared, prepare, record, type Script } from './script.js';

type Step = 'lookUp' | 'accept' | 'claim' | 'flush' | 'settle';

/** The statements of one turn, transaction by transaction. */
export type TurnScripts = Record<Step, Script>;

/** The same, ready to run. */
export type PreparedTurn = Record<Step, Prepared>;

export function prepareTurn({ lookUp, accept, claim, flush, settle }: TurnScripts): PreparedTurn {
  return {
    lookUp: prepare(lookUp),
    accept: prepare(accept),
    claim: prepare(claim),
    flush: prepare(flush),
    settle: prepare(settle),
  };
}

const TEXT = 'the text of the message';
const ANSWER = 'the text of the answer';

/** New ids for a turn whose message says `text`. */
export function newIds(text: string): Ids {
  const names = ['sessionId', 'queueId', 'messageId', 'executionId', 'runId', 'segmentId'];
  return { ...Object.fromEntries(names.map((name) => [name, newId()])), text, answer: '' };
}

/** Runs one turn of the product's own statements on a database, and answers them as scripts. */
export async function recordTurn(databaseUrl: string, { user, projectId, agentId }: Chat): Promise<TurnScripts> {
  const db = new Database(databaseUrl, 1);
  const ids: Ids = { ...newIds(TEXT), answer: ANSWER };
  const of = (name: string) => ids[name] ?? '';
  const take = (work: () => Promise<unknown>) => record(work, () => ids);
  try {
    const session = { sessionId: of('sessionId'), projectId, agentId, userId: user.id };
    const subject = { projectId, agentId };
    const lookedUp = await take(() => lookUp(db, { tokenHash: hashOf(user.token) }, subject));
    const accept = await take(async () => {
      const acceptance = { session, queueId: of('queueId'), text: TEXT, attachments: [], idempotency: null };
      ids.messageId = (await acceptMessage(db, { ...acceptance, maxPending: 50 })).messageId;
    });
    const workerId = 'bench';
    const owner: Owner = {
      executionId: of('executionId'),
      executionNumber: 1,
      sessionId: of('sessionId'),
      runId: '',
      workerId,
    };
    const claim = await take(async () => {
      const request = { sessionId: owner.sessionId, executionId: owner.executionId, workerId, leaseMs: 10_000 };
      const { claimed } = await claimNext(db, request);
      if (!claimed) throw new Error('the turn to be recorded was not claimed');
      owner.runId = ids.runId = claimed.runId;
      ids.segmentId = claimed.segmentId;
    });
    const flush = await take(() => recordBatch(db, owner, batch(of('segmentId'))));
    const settlement = { status: 'success' as const, error: null, finalN: 7, batch: { ...batch(''), entries: [] } };
    const settle = await take(() => settleOrSteer(db, owner, settlement, { place: 1 }));
    return { lookUp: lookedUp, accept, claim, flush, settle };
  } finally {
    await db.stop();
  }
}

/** What a short answer is recorded as. */
function batch(messageId: string): Batch {
  const entry = { messageId, block: null, toolCallId: null, text: null };
  const entries: Entry[] = [
    { ...entry, n: 2, kind: 'step' },
    { ...entry, n: 4, kind: 'text', block: 'txt-0', text: ANSWER },
  ];
  const usage = { inputTokens: 10, outputTokens: 10 };
  return { entries, newCalls: [], endedCalls: [], recordedN: 6, openBlocks: [], steps: 1, usage };
}
