import { Chat, type TranscriptPart } from './chat.js';
import type { AgentConfig, Cluster } from './cluster.js';
import type { EventData } from './sse-parser.js';

/** What the transcript shows of a delegate. */
export interface Child {
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly TranscriptPart[];
  readonly truncated: boolean;
}

/**
 * A chain of agents in one project, each with the one after it as its delegate `deeper`; answers with a chat with the
 * first. The fields of each come in the order of the chain.
 */
export async function chainOf(cluster: Cluster, ...fields: Partial<AgentConfig>[]): Promise<Chat> {
  const user = await cluster.newUser();
  const projectId = await cluster.newProject(user);
  let below: string | undefined;
  for (const one of [...fields].reverse()) {
    const tools = [...(one.tools ?? []), ...(below === undefined ? [] : [delegateTool('deeper', below)])];
    below = await cluster.newAgent(user, projectId, { ...one, tools });
  }
  return new Chat(user, projectId, String(below));
}

/** A tool that hands a task to an agent. */
export function delegateTool(name: string, agentId: string): Record<string, unknown> {
  return { type: 'delegate', name, description: `Hands a task to ${name}`, agentId };
}

/** What stands in chunks of these delegate calls, outermost first, in order. */
export function chunksOf(events: readonly EventData[], ...path: unknown[]): EventData[] {
  return path.reduce<EventData[]>(
    (inner, toolCallId) =>
      inner
        .filter((event) => event.type === 'subagent-chunk' && event.toolCallId === toolCallId)
        .map((event) => event.chunk as EventData),
    [...events],
  );
}

/** The deltas of one type, joined. */
export function joined(events: readonly EventData[], type: string): string {
  return events
    .filter((event) => event.type === type)
    .map((event) => String(event.delta))
    .join('');
}

/** The part of a call in what a transcript shows of an assistant. */
export function childOf(part: TranscriptPart | undefined): Child {
  if (part?.child === undefined) throw new Error(`no delegate in ${JSON.stringify(part)}`);
  return part.child as Child;
}
