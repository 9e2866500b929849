import { type LookupAddress, type LookupAllOptions, lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { Agent, buildConnector, fetch as undiciFetch } from 'undici';
import { isPublicAddress } from './egress-address.js';
import { followRedirects } from './egress-redirect.js';
import { EgressRefused } from './egress-refused.js';

export { EgressRefused } from './egress-refused.js';

/** What a worker uses for every request to a model or a tool: `fetch`, and `close` when nothing runs any more. */
export interface Egress {
  readonly fetch: typeof globalThis.fetch;
  /** Resolves when every connection is closed; requests under way fail. Safe to call twice. */
  close(): Promise<void>;
}

/** Resolves a name to all its addresses, in the manner of `dns.lookup`. A test hands in its own. */
export type ResolveName = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export interface EgressOptions {
  /** `true`: loopback, private and link-local addresses may be reached. (contract section 1) */
  allowPrivateNetwork: boolean;
  /** For tests: how names are looked up, and which addresses count as public. */
  resolveName?: ResolveName;
  isPublic?: (address: string) => boolean;
}

const REFUSED_ADDRESS =
  'The address leads into a private network, which this installation does not allow (ALLOW_PRIVATE_NETWORK).';

/**
 * The worker's way out. Without `allowPrivateNetwork` each connection is checked when it is made, a literal address and
 * a looked-up one alike: so a redirect, a name that changes its address between two look-ups and a name with one private
 * address among several are refused too. No time limit of its own: a turn's limits rule, and a model may think for long.
 * Any number of connections to one origin: 50 turns wait on one provider at a time.
 */
export function createEgress(options: EgressOptions): Egress {
  const { allowPrivateNetwork, resolveName = systemLookup, isPublic = isPublicAddress } = options;
  const agent = new Agent({
    connect: allowPrivateNetwork ? {} : guardedConnector(resolveName, isPublic),
    headersTimeout: 0,
    bodyTimeout: 0,
    connections: null,
    pipelining: 1,
  });
  const send = async (url: string, init: RequestInit): Promise<Response> => {
    try {
      return (await undiciFetch(url, { ...init, dispatcher: agent } as Parameters<typeof undiciFetch>[1])) as never;
    } catch (error) {
      throw unwrapRefusal(error);
    }
  };
  return {
    fetch: (input, init) => followRedirects(send, input, init),
    close: () => agent.destroy(),
  };
}

type IsPublic = (address: string) => boolean;

function guardedConnector(resolveName: ResolveName, isPublic: IsPublic): buildConnector.connector {
  const connect = buildConnector({ lookup: guardedLookup(resolveName, isPublic) } as buildConnector.BuildOptions);
  return (options, callback) => {
    // A literal is never looked up, so the look-up's check alone would let it through.
    const host = options.hostname.replace(/^\[(.*)\]$/, '$1');
    if (isIP(host) !== 0 && !isPublic(host)) return callback(new EgressRefused(REFUSED_ADDRESS), null);
    connect(options, callback);
  };
}

/** One forbidden address among several refuses the name: which of them a connection would take is not ours to say. */
function guardedLookup(resolveName: ResolveName, isPublic: IsPublic): LookupFunction {
  return (hostname, options, callback) => {
    resolveName(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, []);
      if (addresses.length === 0 || !addresses.every(({ address }) => isPublic(address))) {
        return callback(new EgressRefused(REFUSED_ADDRESS), []);
      }
      const first = addresses[0]!;
      return options.all ? callback(null, addresses) : callback(null, first.address, first.family);
    });
  };
}

/** `fetch` hides what a connector throws behind 'fetch failed', which the AI SDK would take for a fault worth retrying. */
function unwrapRefusal(error: unknown): unknown {
  const seen = new Set<unknown>();
  for (let cause = error; cause instanceof Error && !seen.has(cause); cause = cause.cause) {
    if (cause instanceof EgressRefused) return new EgressRefused(cause.message);
    if (cause instanceof AggregateError) {
      const refusal = cause.errors.find((inner) => inner instanceof EgressRefused);
      if (refusal !== undefined) return new EgressRefused(refusal.message);
    }
    seen.add(cause);
  }
  return error;
}
