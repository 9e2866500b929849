import { EgressRefused } from './egress-refused.js';

type FetchInput = Parameters<typeof globalThis.fetch>[0];
type Send = (url: string, init: RequestInit) => Promise<Response>;

const MAX_REDIRECTS = 5;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
/** Headers that speak to one origin alone; the providers' own names for a key are among them. */
const CREDENTIAL_HEADERS = ['authorization', 'proxy-authorization', 'cookie', 'x-api-key', 'x-goog-api-key', 'api-key'];

/**
 * `fetch` with at most five redirects, to http and https alone. Each hop is a request of its own, so the connector checks
 * its address; a credential does not travel to another origin. Errors: `EgressRefused`, and what `send` throws.
 */
export async function followRedirects(send: Send, input: FetchInput, init: RequestInit = {}): Promise<Response> {
  let url = webUrl(input instanceof Request ? input.url : String(input));
  let current: RequestInit = { ...init, redirect: 'manual' };
  for (let hops = 0; ; hops += 1) {
    const response = await send(url.href, current);
    const location = REDIRECTS.has(response.status) ? response.headers.get('location') : null;
    if (location === null) return response;
    await response.body?.cancel();
    if (hops === MAX_REDIRECTS) throw new EgressRefused(`The address redirects more than ${MAX_REDIRECTS} times.`);
    const next = webUrl(location, url);
    current = nextRequest(current, response.status, next.origin === url.origin);
    url = next;
  }
}

function webUrl(text: string, base?: URL): URL {
  if (!URL.canParse(text, base?.href)) throw new EgressRefused('The address is not a valid URL.');
  const url = new URL(text, base);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new EgressRefused('Only http and https addresses can be used.');
  }
  return url;
}

/** As browsers do it: 303, and 301 or 302 to a POST, go on as GET without a body; 307 and 308 repeat the request. */
function nextRequest(init: RequestInit, status: number, sameOrigin: boolean): RequestInit {
  const method = (init.method ?? 'GET').toUpperCase();
  const becomesGet = (status === 303 && method !== 'HEAD') || (status < 303 && method === 'POST');
  const headers = new Headers(init.headers);
  if (!sameOrigin) for (const name of CREDENTIAL_HEADERS) headers.delete(name);
  if (!becomesGet) return { ...init, headers };
  headers.delete('content-type');
  headers.delete('content-length');
  return { ...init, method: 'GET', headers, body: null };
}
