import { setTimeout as pause } from 'node:timers/promises';
import { S3mini } from 's3mini';
import type { S3Settings } from './s3-settings.js';
import { type AttachmentStore, StoreAway } from './store.js';

/** How long one request may take, its body included, in ms. */
const REQUEST_MS = 15_000;
/** A kept connection that the server has just closed, or a 503 of a busy store, passes. */
const ATTEMPTS = 3;
const RETRY_MS = 100;
const REMOVED_AT_ONCE = 8;

/**
 * Attachments as objects of an S3 store, path-style, signed with Signature Version 4. Objects say that they are
 * `application/octet-stream`, whatever they hold: should the bucket be served by mistake, nothing of it runs in a browser.
 */
export class S3Store implements AttachmentStore {
  readonly #client: S3mini;
  readonly #prefix: string;

  /** @param requestMs how long one request may take */
  constructor({ endpoint, bucket, prefix, region, accessKeyId, secretAccessKey }: S3Settings, requestMs = REQUEST_MS) {
    this.#prefix = prefix;
    this.#client = new S3mini({
      endpoint: `${endpoint}/${bucket}`,
      region,
      accessKeyId,
      secretAccessKey,
      requestAbortTimeout: requestMs,
      fetch: fetchWhole,
    });
  }

  keyFor(attachmentId: string): string {
    return `${this.#prefix}${attachmentId}`;
  }

  async put(key: string, bytes: Buffer): Promise<void> {
    await this.#ask(() => this.#client.putObject(key, bytes, 'application/octet-stream'));
  }

  async get(key: string): Promise<Buffer | null> {
    const bytes = await this.#ask(() => this.#client.getObjectArrayBuffer(key));
    return bytes && Buffer.from(bytes);
  }

  /** One request each: several stores know no removal of many. Where none of a handful can be removed, the rest is not tried. */
  async remove(keys: readonly string[]): Promise<string[]> {
    const gone: string[] = [];
    for (let at = 0; at < keys.length; at += REMOVED_AT_ONCE) {
      const some = keys.slice(at, at + REMOVED_AT_ONCE);
      const tried = await Promise.allSettled(some.map((key) => this.#ask(() => this.#removeOne(key))));
      const removed = some.filter((_, index) => tried[index]?.status === 'fulfilled');
      if (removed.length === 0) break;
      gone.push(...removed);
    }
    return gone;
  }

  /** Stores disagree on whether removing what is not there is an error. */
  async #removeOne(key: string): Promise<void> {
    await this.#client.deleteObject(key).catch((error: unknown) => {
      if (fieldOf(error, 'status') !== 404 || fieldOf(error, 'serviceCode') === 'NoSuchBucket') throw error;
    });
  }

  async #ask<T>(request: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await request();
      } catch (error) {
        if (attempt === ATTEMPTS || !mayPass(error)) throw new StoreAway(describe(error));
        await pause(RETRY_MS * attempt);
      }
    }
  }
}

const WITHOUT_BODY = new Set([204, 205, 304]);

/**
 * A fetch that resolves with the whole body, so that a connection that breaks in it is a failed request and none stays
 * busy with a body that nobody reads. A redirect is followed nowhere: bytes go only where ATTACHMENTS_URL says.
 */
const fetchWhole: typeof fetch = async (input, init) => {
  const response = await fetch(input, { ...init, redirect: 'error' });
  const { status, headers } = response;
  const body = await response.arrayBuffer();
  // The client takes every 404 for an object that is not there.
  if (status === 404 && Buffer.from(body).includes('NoSuchBucket')) throw new NoSuchBucket();
  return new Response(WITHOUT_BODY.has(status) ? null : body, { status, headers });
};

class NoSuchBucket extends Error {
  readonly status = 404;
  readonly serviceCode = 'NoSuchBucket';
}

/** A refusal stays one, and a store that was too slow once has taken all the time that there is. */
function mayPass(error: unknown): boolean {
  if (error instanceof Error && error.name === 'TimeoutError') return false;
  const status = fieldOf(error, 'status');
  return typeof status !== 'number' || status >= 500 || status === 429;
}

/** What happened, for the log. Not the answer itself: a store that refuses a signature repeats the key's id and the request. */
function describe(error: unknown): Error {
  const cause = error instanceof Error ? error.cause : undefined;
  const facts = [
    error instanceof Error ? error.name : typeof error,
    fieldOf(error, 'status'),
    fieldOf(error, 'serviceCode') ?? fieldOf(error, 'code') ?? fieldOf(cause, 'code'),
  ];
  return new Error(`S3: ${facts.filter((fact) => typeof fact === 'string' || typeof fact === 'number').join(' ')}`);
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
