import { isIP } from 'node:net';
import { readS3Settings, type S3Settings } from './attachments/s3-settings.js';
import { ConfigError } from './config-error.js';

export { ConfigError };

/** The limits of contract section 1, each an environment variable. */
export interface Limits {
  maxMessageChars: number;
  maxAttachments: number;
  maxAttachmentBytes: number;
  maxRequestBytes: number;
  maxPending: number;
  maxStreams: number;
}

/** What both processes are told (contract, section 1). Durations are in ms. */
export interface Config {
  databaseUrl: string;
  redisUrl: string;
  host: string;
  port: number;
  workerHost: string;
  workerPort: number;
  workerConcurrency: number;
  /** The URL that browsers use, without a trailing slash; null: taken from the request. */
  publicUrl: string | null;
  trustProxy: boolean;
  encryptionKey: Buffer;
  adminToken: string | null;
  agentsEnabled: boolean;
  leaseMs: number;
  shutdownGraceMs: number;
  allowPrivateNetwork: boolean;
  retentionDays: number | null;
  /** Where attachments are; null: in Postgres. */
  attachments: S3Settings | null;
  logLevel: string;
  limits: Limits;
}

type Env = Readonly<Record<string, string | undefined>>;

/**
 * Reads the whole configuration from the environment.
 * @throws ConfigError naming the first value that is missing or malformed; it never repeats a secret value
 */
export function readConfig(env: Env): Config {
  return {
    databaseUrl: url(env, 'DATABASE_URL', ['postgres:', 'postgresql:']),
    redisUrl: url(env, 'REDIS_URL', ['redis:', 'rediss:']),
    host: host(env, 'HOST'),
    port: integer(env, 'PORT', 3000, 0, 65_535),
    workerHost: host(env, 'WORKER_HOST'),
    workerPort: integer(env, 'WORKER_PORT', 3001, 0, 65_535),
    workerConcurrency: integer(env, 'WORKER_CONCURRENCY', 50, 1, 10_000),
    publicUrl: env.PUBLIC_URL ? url(env, 'PUBLIC_URL', ['http:', 'https:']).replace(/\/+$/, '') : null,
    trustProxy: flag(env, 'TRUST_PROXY', false),
    encryptionKey: key(env, 'ENCRYPTION_KEY'),
    adminToken: adminToken(env, 'ADMIN_TOKEN'),
    agentsEnabled: flag(env, 'AGENTS_ENABLED', true),
    leaseMs: integer(env, 'LEASE_MS', 10_000, 500, 3_600_000),
    shutdownGraceMs: integer(env, 'SHUTDOWN_GRACE_MS', 30_000, 0, 86_400_000),
    allowPrivateNetwork: flag(env, 'ALLOW_PRIVATE_NETWORK', false),
    retentionDays: env.RETENTION_DAYS ? integer(env, 'RETENTION_DAYS', 0, 1, 36_500) : null,
    attachments: readS3Settings(env),
    logLevel: oneOf(env, 'LOG_LEVEL', 'info', ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
    limits: readLimits(env),
  };
}

function readLimits(env: Env): Limits {
  const big = Number.MAX_SAFE_INTEGER;
  return {
    maxMessageChars: integer(env, 'MAX_MESSAGE_CHARS', 100_000, 1, big),
    maxAttachments: integer(env, 'MAX_ATTACHMENTS', 10, 0, 1_000),
    maxAttachmentBytes: integer(env, 'MAX_ATTACHMENT_BYTES', 10_485_760, 1, big),
    maxRequestBytes: integer(env, 'MAX_REQUEST_BYTES', 33_554_432, 1_024, big),
    maxPending: integer(env, 'MAX_PENDING', 50, 1, big),
    maxStreams: integer(env, 'MAX_STREAMS', 50, 1, big),
  };
}

function url(env: Env, name: string, protocols: readonly string[]): string {
  const value = env[name];
  if (!value) throw new ConfigError(`${name} is missing`);
  if (!URL.canParse(value) || !protocols.includes(new URL(value).protocol))
    throw new ConfigError(`${name} is not a URL that starts with ${protocols.map((p) => `${p}//`).join(' or ')}`);
  return value;
}

function host(env: Env, name: string): string {
  const value = env[name] || '127.0.0.1';
  if (!isIP(value) && !/^[a-zA-Z0-9.-]+$/.test(value))
    throw new ConfigError(`${name} is not a host name or an address`);
  return value;
}

function integer(env: Env, name: string, fallback: number, min: number, max: number): number {
  const text = env[name];
  if (text === undefined || text === '') return fallback;
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < min || value > max)
    throw new ConfigError(`${name} is not a whole number from ${min} to ${max}`);
  return value;
}

function flag(env: Env, name: string, fallback: boolean): boolean {
  const value = env[name];
  if (value === undefined || value === '') return fallback;
  if (value !== 'true' && value !== 'false') throw new ConfigError(`${name} is neither true nor false`);
  return value === 'true';
}

function oneOf(env: Env, name: string, fallback: string, values: readonly string[]): string {
  const value = env[name] || fallback;
  if (!values.includes(value)) throw new ConfigError(`${name} is none of ${values.join(', ')}`);
  return value;
}

function key(env: Env, name: string): Buffer {
  const value = env[name];
  if (!value) throw new ConfigError(`${name} is missing`);
  const bytes = Buffer.from(value, 'base64');
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(value) || bytes.length !== 32)
    throw new ConfigError(`${name} is not 32 bytes in base64`);
  return bytes;
}

function adminToken(env: Env, name: string): string | null {
  const value = env[name];
  if (value === undefined || value === '') return null;
  if (!/^[\x21-\x7e]+$/.test(value)) throw new ConfigError(`${name} may hold no spaces and only ASCII`);
  return value;
}
