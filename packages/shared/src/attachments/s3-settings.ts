import { ConfigError } from '../config-error.js';

/** Where an S3 store is, and who we are to it. */
export interface S3Settings {
  /** Scheme, host and port, perhaps a path; without a trailing slash. */
  endpoint: string;
  bucket: string;
  /** What every key begins with: empty, or ending with a slash. */
  prefix: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
}

type Env = Readonly<Record<string, string | undefined>>;

/** Most stores besides Amazon's have one region, and answer to this name. */
const USUAL_REGION = 'us-east-1';

/**
 * Reads `ATTACHMENTS_URL` (contract, section 1) and the AWS_* variables that every S3 client reads; null: attachments
 * stay in Postgres. Without `?endpoint=` the bucket is at Amazon.
 * @throws ConfigError naming the first value that is missing or malformed; it never repeats a value
 */
export function readS3Settings(env: Env): S3Settings | null {
  if (!env.ATTACHMENTS_URL) return null;
  const place = readPlace(env.ATTACHMENTS_URL);
  // Temporary credentials run out, and nothing here would fetch new ones.
  if (env.AWS_SESSION_TOKEN)
    throw new ConfigError('AWS_SESSION_TOKEN is set, but ATTACHMENTS_URL works only with lasting credentials');
  const region = place.endpoint === null ? required(env, 'AWS_REGION') : env.AWS_REGION || USUAL_REGION;
  if (!/^[a-z0-9-]+$/.test(region)) throw new ConfigError('AWS_REGION is not the name of a region');
  return {
    ...place,
    endpoint: place.endpoint ?? `https://s3.${region}.amazonaws.com`,
    region,
    accessKeyId: required(env, 'AWS_ACCESS_KEY_ID'),
    secretAccessKey: required(env, 'AWS_SECRET_ACCESS_KEY'),
  };
}

function readPlace(text: string): { endpoint: string | null; bucket: string; prefix: string } {
  const url = URL.canParse(text) ? new URL(text) : null;
  const parameters = [...(url?.searchParams.keys() ?? [])];
  const known = parameters.every((name) => name === 'endpoint') && parameters.length <= 1;
  if (url?.protocol !== 's3:' || !known || url.hash !== '' || url.username !== '' || url.password !== '')
    throw new ConfigError('ATTACHMENTS_URL is not s3://bucket/prefix?endpoint=…');
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(url.host))
    throw new ConfigError('ATTACHMENTS_URL names no bucket: 3 to 63 lower-case letters, digits, dots and hyphens');
  const prefix = url.pathname.split('/').filter((part) => part !== '');
  if (!prefix.every((part) => /^[A-Za-z0-9._-]+$/.test(part)))
    throw new ConfigError('ATTACHMENTS_URL has a prefix with other characters than letters, digits, dots, _ and -');
  return {
    endpoint: readEndpoint(url.searchParams.get('endpoint')),
    bucket: url.host,
    prefix: prefix.map((part) => `${part}/`).join(''),
  };
}

function readEndpoint(text: string | null): string | null {
  if (text === null) return null;
  const url = URL.canParse(text) ? new URL(text) : null;
  const http = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (!url || !http || url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new ConfigError('ATTACHMENTS_URL has an endpoint that is not http://host or https://host');
  return url.href.replace(/\/+$/, '');
}

function required(env: Env, name: string): string {
  const value = env[name];
  if (!value) throw new ConfigError(`${name} is missing: ATTACHMENTS_URL needs it`);
  return value;
}
