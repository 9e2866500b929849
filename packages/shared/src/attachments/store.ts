/** The store of attachments could not be asked, or refused. Nothing is known of what was asked of it. */
export class StoreAway extends Error {
  constructor(cause?: unknown) {
    super('the store of attachments is away', { cause });
    this.name = 'StoreAway';
  }
}

/**
 * Where the bytes of attachments are (contract, section 1, `ATTACHMENTS_URL`). All mains and workers reach the same one.
 * The row of an attachment holds either its bytes or the key of its object.
 */
export interface AttachmentStore {
  /** The key of the object that is to hold an attachment's bytes; null: its row holds them. */
  keyFor(attachmentId: string): string | null;
  /** Writes an object. Throws `StoreAway`; the object may be there nevertheless, at once or soon. */
  put(key: string, bytes: Buffer): Promise<void>;
  /** An object's bytes; null: there is none. Throws `StoreAway`. */
  get(key: string): Promise<Buffer | null>;
  /** Removes objects and answers with the keys that are gone now, also of those that were not there. Never throws. */
  remove(keys: readonly string[]): Promise<string[]>;
}

/** The default: bytes stand in the attachments' rows. Objects of an earlier S3 store are out of reach until it is named again. */
export const rowsOnly: AttachmentStore = {
  keyFor: () => null,
  put: async () => {
    throw new StoreAway('ATTACHMENTS_URL is not set');
  },
  get: async () => {
    throw new StoreAway('ATTACHMENTS_URL is not set, and this attachment is in an S3 store');
  },
  remove: async () => [],
};
