import { expectObjects, giveUpObjects } from '../attachments/loose-objects.js';
import { type AttachmentStore, StoreAway } from '../attachments/store.js';
import type { AttachmentView } from '../contract/chat.js';
import { newId } from '../contract/ids.js';
import { ProblemError } from '../contract/problems.js';
import type { Query } from '../db/database.js';
import type { SessionRef } from './refs.js';

/** A file as it came in, with its type as sniffed. */
export interface NewAttachment {
  title: string;
  fileName: string;
  mimeType: string;
  data: Buffer;
}

/** What a message brings: bytes, or the name of what was sent first. */
export type IncomingAttachment = NewAttachment | NamedAttachment;

interface NamedAttachment {
  title: string;
  attachmentId: string;
}

/** A file whose bytes are where its row will say they are: in the object `objectKey`; null: in the row. */
export interface StoredAttachment extends NewAttachment {
  attachmentId: string;
  objectKey: string | null;
}

/** What a transaction gives to a message. */
export type ReadyAttachment = StoredAttachment | NamedAttachment;

/** Whose an attachment is. */
export interface AttachmentOwner {
  agentId: string;
  userId: string;
}

/** SQL: the attachments of message `id` as a JSON array of `AttachmentView`. */
export const attachmentsOf = (id: string) => `(
  select coalesce(json_agg(json_build_object('attachmentId', f.id, 'fileName', f.file_name, 'mimeType', f.mime_type,
    'sizeBytes', f.size_bytes) order by f.ordinal), '[]'::json) from attachments f where f.message_id = ${id})`;

/** SQL: message `m` of the query, as `EventMessage`. */
export const MESSAGE = `json_build_object('id', m.id, 'text', m.text, 'attachments', ${attachmentsOf('m.id')})`;

/**
 * Writes the objects of what comes with a message, then runs `commit`, the transaction that names them: so no row names an
 * object that is not there. What `commit` did not keep is given up. With Postgres as the store nothing but `commit` runs.
 *
 * @throws StoreAway where an object could not be written; `commit` has not run then
 */
export async function withBytesStored<T>(
  db: Query,
  store: AttachmentStore,
  attachments: readonly IncomingAttachment[],
  commit: (ready: ReadyAttachment[]) => Promise<T>,
): Promise<T> {
  const ready = attachments.map((attachment) => makeReady(store, attachment));
  const objects = ready.filter(hasObject);
  if (objects.length > 0) await writeObjects(db, store, objects);
  try {
    return await commit(ready);
  } catch (error) {
    // Where this fails too, the objects fall due by themselves.
    await giveUp(db, ready).catch(() => {});
    throw error;
  }
}

/** Gives up the objects that no attachment came to name, in the transaction that decides so. */
export async function giveUp(db: Query, ready: readonly ReadyAttachment[]): Promise<void> {
  const keys = ready.filter(hasObject).map(({ objectKey }) => objectKey);
  if (keys.length > 0) await giveUpObjects(db, keys);
}

function makeReady(store: AttachmentStore, attachment: IncomingAttachment): ReadyAttachment {
  if ('attachmentId' in attachment) return attachment;
  const attachmentId = newId();
  return { ...attachment, attachmentId, objectKey: store.keyFor(attachmentId) };
}

function hasObject(attachment: ReadyAttachment): attachment is StoredAttachment & { objectKey: string } {
  return 'objectKey' in attachment && attachment.objectKey !== null;
}

async function writeObjects(
  db: Query,
  store: AttachmentStore,
  objects: readonly (StoredAttachment & { objectKey: string })[],
): Promise<void> {
  const keys = objects.map(({ objectKey }) => objectKey);
  await expectObjects(db, keys);
  const written = await Promise.allSettled(objects.map(({ objectKey, data }) => store.put(objectKey, data)));
  const failed = written.find((outcome) => outcome.status === 'rejected');
  if (!failed) return;
  await giveUpObjects(db, keys, true).catch(() => {});
  throw failed.reason;
}

/**
 * Stores an attachment that was sent before its message (section 4). Kept for an hour unless a message names it.
 * @throws StoreAway
 */
export async function storeAttachment(
  db: Query,
  store: AttachmentStore,
  owner: AttachmentOwner,
  file: NewAttachment,
): Promise<AttachmentView> {
  return withBytesStored(db, store, [file], async ([ready]) => {
    const stored = ready as StoredAttachment;
    await insert(db, owner, null, 0, stored);
    const { attachmentId, fileName, mimeType, data } = stored;
    return { attachmentId, fileName, mimeType, sizeBytes: data.length };
  });
}

/**
 * Gives attachments to a message, in the transaction that accepts it. Of two messages that name one attachment, the one
 * that commits first gets it.
 * @throws ProblemError `not_found` for one that was sent first and is not there, not the user's, or used already
 */
export async function attach(
  tx: Query,
  owner: SessionRef,
  messageId: string,
  attachments: readonly ReadyAttachment[],
): Promise<void> {
  for (const [ordinal, attachment] of attachments.entries()) {
    if ('data' in attachment) {
      await insert(tx, owner, messageId, ordinal, attachment);
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
  owner: AttachmentOwner,
  messageId: string | null,
  ordinal: number,
  { attachmentId, fileName, mimeType, data, objectKey }: StoredAttachment,
): Promise<void> {
  const { agentId, userId } = owner;
  const row = [attachmentId, agentId, userId, messageId, ordinal, fileName, mimeType, data.length];
  const columns = 'id, agent_id, user_id, message_id, ordinal, file_name, mime_type, size_bytes';
  if (objectKey === null) {
    await db.query(`insert into attachments (${columns}, data) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, [
      ...row,
      data,
    ]);
    return;
  }
  const kept = await db.query(
    `with object as (delete from loose_objects where key = $9 and state = 'uploading' returning key)
     insert into attachments (${columns}, object_key) select $1, $2, $3, $4, $5, $6, $7, $8, key from object returning id`,
    [...row, objectKey],
  );
  // The upload has outlived its time, and the object may be gone already.
  if (kept.length === 0) throw new StoreAway('an upload took too long');
}

interface BytesRow {
  data: Buffer | null;
  object_key: string | null;
  size_bytes: number;
}

/**
 * An attachment of that user at that agent, with its bytes; null where there is none.
 * @throws StoreAway
 */
export async function readAttachment(
  db: Query,
  store: AttachmentStore,
  owner: AttachmentOwner,
  attachmentId: string,
): Promise<Omit<NewAttachment, 'title'> | null> {
  const [row] = await db.query<{ file_name: string; mime_type: string } & BytesRow>(
    `select file_name, mime_type, data, object_key, size_bytes from attachments
     where id = $1 and user_id = $2 and agent_id = $3`,
    [attachmentId, owner.userId, owner.agentId],
  );
  const data = row ? await bytesOf(store, row) : null;
  return row && data ? { fileName: row.file_name, mimeType: row.mime_type, data } : null;
}

/**
 * The bytes of an attachment, for the model; null where they are gone.
 * @throws StoreAway
 */
export async function loadBytes(db: Query, store: AttachmentStore, attachmentId: string): Promise<Buffer | null> {
  const [row] = await db.query<BytesRow>('select data, object_key, size_bytes from attachments where id = $1', [
    attachmentId,
  ]);
  return row ? bytesOf(store, row) : null;
}

async function bytesOf(store: AttachmentStore, { data, object_key, size_bytes }: BytesRow): Promise<Buffer | null> {
  if (object_key === null) return data;
  const bytes = await store.get(object_key);
  if (bytes && bytes.length !== size_bytes) throw new StoreAway('an object has another length than was stored');
  return bytes;
}

/**
 * Removes attachments that no message has named within an hour, at most `count`. One that a message names at this moment is
 * skipped: its lock, and the condition once more, keep a message from losing what it has just been given.
 */
export async function removeOrphans(db: Query, count: number): Promise<void> {
  await db.query(
    `delete from attachments where message_id is null and id in (select id from attachments
       where message_id is null and created_at < now() - interval '1 hour' limit $1 for update skip locked)`,
    [count],
  );
}
