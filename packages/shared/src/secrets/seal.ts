import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/** The first byte of what `seal` makes; another way of sealing would get another one. */
const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + NONCE_BYTES + TAG_BYTES;

/** What was sealed cannot be opened: another ENCRYPTION_KEY, another row, or damaged bytes. Says nothing of the secret. */
export class UnsealError extends Error {
  constructor(cause?: unknown) {
    super('a stored credential cannot be opened with this ENCRYPTION_KEY', { cause });
    this.name = 'UnsealError';
  }
}

/**
 * Encrypts a secret with AES-256-GCM.
 * @param key 32 bytes, ENCRYPTION_KEY (contract, section 1)
 * @param id of the row that will hold it; authenticated with it, so that a sealed secret opens in no other row
 * @returns version (1 byte), nonce (12), tag (16), ciphertext
 */
export function seal(key: Buffer, id: string, secret: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(associated(id));
  const ciphertext = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
  return Buffer.concat([Buffer.of(VERSION), nonce, cipher.getAuthTag(), ciphertext]);
}

/**
 * Decrypts what `seal` made with the same key and id.
 * @throws UnsealError where it was made with others, or changed since
 */
export function open(key: Buffer, id: string, sealed: Buffer): string {
  if (sealed.length < HEAD_BYTES || sealed[0] !== VERSION) throw new UnsealError();
  const nonce = sealed.subarray(1, 1 + NONCE_BYTES);
  const tag = sealed.subarray(1 + NONCE_BYTES, HEAD_BYTES);
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
      .setAAD(associated(id))
      .setAuthTag(tag);
    return Buffer.concat([decipher.update(sealed.subarray(HEAD_BYTES)), decipher.final()]).toString('utf8');
  } catch (error) {
    throw new UnsealError(error);
  }
}

function associated(id: string): Buffer {
  return Buffer.concat([Buffer.of(VERSION), Buffer.from(id.toLowerCase(), 'utf8')]);
}
