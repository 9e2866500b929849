import type { AgentConfig } from '@turnkeep/shared/contract/agent';
import type { SuspensionKind } from '@turnkeep/shared/contract/execution';
import type { ModelMessage } from 'ai';
import type { JsonObject } from './runtime/json.js';
import type { McpToolOffer } from './runtime/mcp.js';
import type { StepUsage } from './runtime/step.js';
import type { ToolResult } from './runtime/tool-output.js';

/** What of a delegation's text and reasoning is still kept: they share one budget (contract, section 5). */
export interface Kept {
  /** Code points left; negative once something did not fit. */
  left: number;
}

/** A call of a step, and how far it is. Exactly one of `result`, `wait` and `child` says so; none: it has not begun. */
export interface BatchCall {
  callId: string;
  toolName: string;
  input: JsonObject;
  /** Set: the call is not to be run; the text tells the model why. */
  invalid?: string;
  result: ToolResult | null;
  /** It waits for a person. */
  wait: SuspensionKind | null;
  /** A delegate that waits, somewhere inside. */
  child: Frame | null;
}

/** The calls of the newest step, until each has its result. */
export interface Batch {
  calls: BatchCall[];
  /** The ids under which the calls stand in the context. */
  providerCallIds: Record<string, string>;
}

/**
 * An agent at work: the one that the user talks to, or a delegate inside one of its calls. Serialisable as JSON: a
 * checkpoint is the root's frame with all that is inside.
 */
export interface Frame {
  /** The delegate calls that lead here, outermost first; empty for the root. */
  path: string[];
  config: AgentConfig;
  messages: ModelMessage[];
  /** The tools of its MCP servers as listed when it began, and what the model is told of servers that gave none. */
  mcp: McpToolOffer[];
  notes: string[];
  batch: Batch | null;
  /** What it said in its newest step: a delegate's answer, where that is its last. */
  said: string;
  kept: Kept;
  /** What the root's newest step cost, until its `finish-step` is sent. */
  usage: StepUsage | null;
}

/** Characters of text and reasoning that are kept of a delegation. */
const KEPT_CHARS = 4_000;

export function newFrame(path: string[], config: AgentConfig, messages: ModelMessage[]): Frame {
  return { path, config, messages, mcp: [], notes: [], batch: null, said: '', kept: { left: KEPT_CHARS }, usage: null };
}

/** The calls that wait for a person, in the order of the calls, delegates' included. */
export function waitingCalls(frame: Frame): (BatchCall & { wait: SuspensionKind })[] {
  return (frame.batch?.calls ?? []).flatMap((call) => {
    if (call.child) return waitingCalls(call.child);
    return call.wait ? [{ ...call, wait: call.wait }] : [];
  });
}

/** The delegate calls inside which somebody waits. */
export function waitingDelegates(frame: Frame): string[] {
  return (frame.batch?.calls ?? []).flatMap((call) =>
    call.child ? [call.callId, ...waitingDelegates(call.child)] : [],
  );
}
