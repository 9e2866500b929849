import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** Who may use the store of the tests. */
export interface S3Identity {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly region: string;
}

const SKEW_MS = 15 * 60 * 1000;
const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/,]+)\/(\d{8})\/([^/,]+)\/s3\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/;
const ALWAYS_SIGNED = ['host', 'x-amz-content-sha256', 'x-amz-date'];

/**
 * What an S3 store would object to in the signature of this request (AWS Signature Version 4, computed here from the
 * bytes of the request and nothing of the client's code), as an S3 error code; `undefined` where it would answer.
 */
export function signatureFault(request: IncomingMessage, body: Buffer, identity: S3Identity): string | undefined {
  const match = AUTHORIZATION.exec(request.headers.authorization ?? '');
  if (match === null) return 'AccessDenied';
  const [, accessKeyId, day = '', region = '', signedHeaders = '', signature = ''] = match;
  if (accessKeyId !== identity.accessKeyId) return 'InvalidAccessKeyId';
  if (region !== identity.region) return 'AuthorizationHeaderMalformed';
  const names = signedHeaders.split(';');
  if (!mustBeSigned(request).every((name) => names.includes(name))) return 'AccessDenied';
  const date = String(request.headers['x-amz-date']);
  const at = Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
  if (Number.isNaN(at) || !date.startsWith(day) || Math.abs(at - Date.now()) > SKEW_MS) return 'RequestTimeTooSkewed';
  const payload = String(request.headers['x-amz-content-sha256']);
  if (payload !== 'UNSIGNED-PAYLOAD' && payload !== sha256(body)) return 'XAmzContentSHA256Mismatch';
  const scope = `${day}/${region}/s3/aws4_request`;
  const toSign = ['AWS4-HMAC-SHA256', date, scope, sha256(canonicalRequest(request, names, payload))].join('\n');
  const key = [day, region, 's3', 'aws4_request'].reduce<Buffer | string>(
    (last, part) => hmac(last, part),
    `AWS4${identity.secretAccessKey}`,
  );
  const expected = hmac(key, toSign);
  return timingSafeEqual(expected, Buffer.from(signature, 'hex')) ? undefined : 'SignatureDoesNotMatch';
}

/** Host, and every header that S3 itself gives a meaning to. */
function mustBeSigned(request: IncomingMessage): string[] {
  const amazon = Object.keys(request.headers).filter((name) => name.startsWith('x-amz-'));
  return [...new Set([...ALWAYS_SIGNED, ...amazon])];
}

function canonicalRequest(request: IncomingMessage, names: readonly string[], payload: string): string {
  const [path = '', query = ''] = (request.url ?? '').split('?');
  const pairs = query === '' ? [] : query.split('&').map((pair) => (pair.includes('=') ? pair : `${pair}=`));
  const headers = [...names].sort().map((name) => `${name}:${String(request.headers[name]).trim()}\n`);
  return [request.method, path, pairs.sort().join('&'), headers.join(''), names.join(';'), payload].join('\n');
}

function sha256(data: Buffer | string): string {
  return createHash('sha256').update(data).digest('hex');
}

function hmac(key: Buffer | string, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
