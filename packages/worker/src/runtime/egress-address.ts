import ipaddr from 'ipaddr.js';

/**
 * Azure's host agent answers on this address from inside a virtual machine, and it is public by every registry: the one
 * metadata service that no range tells.
 */
const HOST_AGENTS = new Set(['168.63.129.16']);
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');

/**
 * Whether a worker may connect to `address` without ALLOW_PRIVATE_NETWORK: only public unicast addresses, in either
 * family. Anything that is no IP address is not public. (contract section 1, ALLOW_PRIVATE_NETWORK)
 */
export function isPublicAddress(address: string): boolean {
  const parsed = parseAddress(address);
  if (parsed === undefined) return false;
  return parsed instanceof ipaddr.IPv6 ? isPublicV6(parsed) : isPublicV4(parsed);
}

function parseAddress(address: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  const bare = address.replace(/^\[(.*)\]$/, '$1');
  return ipaddr.isValid(bare) ? ipaddr.parse(bare) : undefined;
}

function isPublicV4(address: ipaddr.IPv4): boolean {
  return address.range() === 'unicast' && !HOST_AGENTS.has(address.toString());
}

/**
 * An address that carries an IPv4 address is as public as what it carries: a cluster of IPv6 alone reaches the
 * internet through NAT64. 6to4, Teredo and the deprecated `::a.b.c.d` (which ipaddr.js calls unicast) are refused.
 */
function isPublicV6(address: ipaddr.IPv6): boolean {
  if (address.isIPv4MappedAddress()) return isPublicV4(address.toIPv4Address());
  if (address.match(NAT64)) return isPublicV4(new ipaddr.IPv4(address.toByteArray().slice(12)));
  return address.range() === 'unicast' && address.match(GLOBAL_UNICAST);
}
