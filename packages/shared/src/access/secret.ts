import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** What a secret is for, told by its beginning: a user's token, the code of a sign-in link, a browser's cookie. */
export type SecretKind = 'tk' | 'lk' | 'ws';

/**
 * A new secret of 256 random bits, with a prefix that tells what it is (so that a leaked one is recognised by scanners).
 * It is shown once; only `hashOf` it is stored (contract, section 2).
 */
export function newSecret(kind: SecretKind): string {
  return `${kind}_${randomBytes(32).toString('base64url')}`;
}

/** True where `secret` has the form of that kind. Says nothing of its being valid. */
export function isSecretOf(kind: SecretKind, secret: string): boolean {
  return secret.startsWith(`${kind}_`);
}

/**
 * SHA-256 of a secret, 32 bytes: what is stored and looked up. No salt and no slow hash, since 256 random bits cannot be
 * guessed, and since every request computes it.
 */
export function hashOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

/** Compares two hashes in constant time. */
export function sameHash(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
