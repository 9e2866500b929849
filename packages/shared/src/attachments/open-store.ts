import type { S3Settings } from './s3-settings.js';
import { S3Store } from './s3-store.js';
import { type AttachmentStore, rowsOnly } from './store.js';

/** The store that the configuration names; null: Postgres. Makes no request. */
export function openStore(settings: S3Settings | null): AttachmentStore {
  return settings === null ? rowsOnly : new S3Store(settings);
}
