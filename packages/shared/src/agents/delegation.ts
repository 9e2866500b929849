import type { FieldError } from '../contract/problems.js';

/** How deep delegation may go: an agent, its delegate, theirs, and theirs again (contract, section 3). */
export const MAX_DELEGATION_DEPTH = 3;

/** Which agents an agent delegates to. */
export type Delegates = ReadonlyMap<string, readonly string[]>;

/**
 * Checks the delegates of an agent that is about to be saved.
 * @param saved what is saved now: each agent that is there with its delegates
 * @param agentId the agent to be saved; a new one is not in `saved` yet
 * @param wanted its delegates, each with the JSON Pointer that names it in the request
 * @returns an error for each delegate that is not there, would close a cycle, or would make a chain of more than three
 */
export function checkDelegates(
  saved: Delegates,
  agentId: string,
  wanted: readonly { agentId: string; pointer: string }[],
): FieldError[] {
  const above = longestChain(agentId, reversed(saved));
  return wanted.flatMap(({ agentId: delegateId, pointer }) => {
    const message = objection(saved, agentId, delegateId, above);
    return message === null ? [] : [{ pointer, message }];
  });
}

function objection(saved: Delegates, agentId: string, delegateId: string, above: number): string | null {
  if (delegateId === agentId) return 'is the agent itself';
  if (!saved.has(delegateId)) return 'is no agent of this project';
  if (reaches(saved, delegateId, agentId)) return 'delegates back to this agent';
  if (above + 1 + longestChain(delegateId, saved) > MAX_DELEGATION_DEPTH)
    return `makes a delegation of more than ${MAX_DELEGATION_DEPTH} steps`;
  return null;
}

function reaches(edges: Delegates, from: string, to: string): boolean {
  const seen = new Set<string>();
  const open = [from];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (at === to) return true;
    if (seen.has(at)) continue;
    seen.add(at);
    open.push(...(edges.get(at) ?? []));
  }
  return false;
}

/** The number of steps of the longest chain from `from`. What is saved has no cycle; one deeper than allowed is cut there. */
function longestChain(from: string, edges: Delegates): number {
  let steps = 0;
  for (let level = new Set([from]); steps <= MAX_DELEGATION_DEPTH; steps += 1) {
    level = new Set([...level].flatMap((at) => edges.get(at) ?? []));
    if (level.size === 0) break;
  }
  return steps;
}

function reversed(edges: Delegates): Delegates {
  const result = new Map<string, string[]>();
  for (const [from, targets] of edges) for (const to of targets) result.set(to, [...(result.get(to) ?? []), from]);
  return result;
}
