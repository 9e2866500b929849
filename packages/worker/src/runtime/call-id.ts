import { isStorable } from '@turnkeep/shared/contract/text';

/**
 * The id under which a call stands in requests to the provider. The provider's own where it has one that is storable, not
 * blank and not yet `used` there; else Turnkeep's, without its dashes, since OpenAI takes at most 40 characters and `call_<uuid>` has
 * 41. Adds the id to `used`. (contract section 3: the provider's id appears only in requests to that provider)
 */
export function wireCallId(callId: string, providerCallId: string | null, used: Set<string>): string {
  const own = providerCallId?.trim() && isStorable(providerCallId) ? providerCallId : null;
  const id = own !== null && !used.has(own) ? own : callId.replaceAll('-', '').slice(0, 40);
  used.add(id);
  return id;
}

/**
 * A tool name that a strict provider takes back. A model may invent one; what no provider would allow in a name becomes `_`.
 */
export function wireToolName(toolName: string): string {
  const name = toolName.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64);
  return name === '' ? 'unnamed' : name;
}
