import type { CreateCredential, CredentialView } from '../contract/access.js';
import { newId } from '../contract/ids.js';
import type { Query } from '../db/database.js';
import { open, seal } from '../secrets/seal.js';

/** What a credential holds. It goes to model providers and never into a response, log, error, event or transcript. */
export type CredentialData = CreateCredential['data'];

/** Stores a credential, sealed with ENCRYPTION_KEY (contract, section 3). */
export async function createCredential(
  db: Query,
  encryptionKey: Buffer,
  projectId: string,
  { name, data }: CreateCredential,
): Promise<CredentialView> {
  const id = newId();
  await db.query('insert into credentials (id, project_id, name, secret) values ($1, $2, $3, $4)', [
    id,
    projectId,
    name,
    seal(encryptionKey, id, JSON.stringify(data)),
  ]);
  return { id, name };
}

/** The credentials of a project, oldest first, without their secrets. */
export async function listCredentials(db: Query, projectId: string): Promise<CredentialView[]> {
  return db.query<CredentialView>('select id, name from credentials where project_id = $1 order by created_at, id', [
    projectId,
  ]);
}

/** Deletes a credential, also one that agents name: their turns then fail and say so. Answers whether it was there. */
export async function deleteCredential(db: Query, projectId: string, credentialId: string): Promise<boolean> {
  const rows = await db.query('delete from credentials where id = $1 and project_id = $2 returning id', [
    credentialId,
    projectId,
  ]);
  return rows.length > 0;
}

/**
 * Opens a credential for a model request; null where it was deleted.
 * @throws UnsealError where ENCRYPTION_KEY is not the one that sealed it
 */
export async function readCredential(
  db: Query,
  encryptionKey: Buffer,
  projectId: string,
  credentialId: string,
): Promise<CredentialData | null> {
  const [row] = await db.query<{ id: string; secret: Buffer }>(
    'select id, secret from credentials where id = $1 and project_id = $2',
    [credentialId, projectId],
  );
  return row ? (JSON.parse(open(encryptionKey, row.id, row.secret)) as CredentialData) : null;
}
