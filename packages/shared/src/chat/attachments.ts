import type { AttachmentView } from '../contract/chat.js';
import { newId } from '../contract/ids.js';
import { ProblemError } from '../contract/problems.js';
import type { Query } from '../db/database.js';
import type { SessionRef } from './refs.js';

/** The bytes of an attachment, with its type as sniffed. */
export interface NewAttachment {
  title: string;
  fileName: string;
  mimeType: string;
  data: Buffer;
}

/** What a message brings: bytes, or the name of what was sent first. */
export type IncomingAttachment = NewAttachment | { title: string; attachmentId: string };

/** SQL: the attachments of message `id` as a JSON array of `AttachmentView`. */
export const attachmentsOf = (id: string) => `(
  select coalesce(json_agg(json_build_object('attachmentId', f.id, 'fileName', f.file_name, 'mimeType', f.mime_type,
    'sizeBytes', f.size_bytes) order by f.ordinal), '[]'::json) from attachments f where f.message_id = ${id})`;

/** Stores an attachment that was sent before its message (section 4). Kept for an hour unless a message names it. */
export async function storeAttachment(
  db: Query,
  owner: { agentId: string; userId: string },
  { fileName, mimeType, data }: NewAttachment,
): Promise<AttachmentView> {
  const attachmentId = newId();
  await insert(db, owner, null, 0, attachmentId, { fileName, mimeType, data });
  return { attachmentId, fileName, mimeType, sizeBytes: data.length };
}

/**
 * Gives attachments to a message, in the transaction that accepts it.
 * @throws ProblemError `not_found` for one that was sent first and is not there, not the user's, or used already
 */
export async function attach(
  tx: Query,
  owner: SessionRef,
  messageId: string,
  attachments: IncomingAttachment[],
): Promise<void> {
  for (const [ordinal, attachment] of attachments.entries()) {
    if ('data' in attachment) {
      await insert(tx, owner, messageId, ordinal, newId(), attachment);
      continue;
    }
    const taken = await tx.query(
      `update attachments set message_id = $1, ordinal = $2
       where id = $3 and user_id = $4 and agent_id = $5 and message_id is null returning id`,
      [messageId, ordinal, attachment.attachmentId, owner.userId, owner.agentId],
    );
    if (taken.length === 0) throw new ProblemError('not_found', 'There is no such attachment.');
  }
}

async function insert(
  db: Query,
  owner: { agentId: string; userId: string },
  messageId: string | null,
  ordinal: number,
  id: string,
  { fileName, mimeType, data }: Omit<NewAttachment, 'title'>,
): Promise<void> {
  await db.query(
    `insert into attachments (id, agent_id, user_id, message_id, ordinal, file_name, mime_type, size_bytes, data)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [id, owner.agentId, owner.userId, messageId, ordinal, fileName, mimeType, data.length, data],
  );
}

/** An attachment of that user at that agent, with its bytes; null where there is none. */
export async function readAttachment(
  db: Query,
  owner: { agentId: string; userId: string },
  attachmentId: string,
): Promise<(Omit<NewAttachment, 'title'> & { sizeBytes: number }) | null> {
  const [row] = await db.query<{ file_name: string; mime_type: string; data: Buffer }>(
    'select file_name, mime_type, data from attachments where id = $1 and user_id = $2 and agent_id = $3',
    [attachmentId, owner.userId, owner.agentId],
  );
  return row ? { fileName: row.file_name, mimeType: row.mime_type, data: row.data, sizeBytes: row.data.length } : null;
}

/** The bytes of an attachment, for the model. Throws where it is gone. */
export async function readAttachmentBytes(db: Query, attachmentId: string): Promise<Buffer> {
  const [row] = await db.query<{ data: Buffer }>('select data from attachments where id = $1', [attachmentId]);
  if (!row) throw new Error('an attachment of the transcript is gone');
  return row.data;
}

/** Removes attachments that no message has named within an hour, at most `count`. */
export async function removeOrphans(db: Query, count: number): Promise<void> {
  await db.query(
    `delete from attachments where id in (select id from attachments
       where message_id is null and created_at < now() - interval '1 hour' limit $1)`,
    [count],
  );
}
