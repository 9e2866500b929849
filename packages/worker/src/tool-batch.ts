import type { AgentConfig, HttpTool } from '@turnkeep/shared/contract/agent';
import type { MadeCall, Output } from './output.js';
import type { RunningTurn } from './running-turn.js';
import type { Egress } from './runtime/egress.js';
import { callHttpTool } from './runtime/http-tool.js';
import type { StepPart, ToolDefinition } from './runtime/step.js';
import type { ToolResult } from './runtime/tool-output.js';

/** A call of a step, as the model made it; `invalid` says why it is not to be run. */
export type StepCall = Extract<StepPart, { type: 'tool-call' }>;

/** The tools that an agent offers its model. */
export function offeredTools(config: AgentConfig): ToolDefinition[] {
  return config.tools.flatMap((tool) =>
    tool.type === 'http' ? [{ name: tool.name, description: tool.description, inputSchema: tool.inputSchema }] : [],
  );
}

/**
 * Runs the calls of a step side by side, and hands each result on as it comes. The results are in the order of the calls.
 * @throws the abort reason, as soon as the turn is stopped
 */
export async function runCalls(
  { turn, output, egress }: { turn: RunningTurn; output: Output; egress: Egress },
  calls: readonly StepCall[],
): Promise<ToolResult[]> {
  return Promise.all(
    calls.map(async (call) => {
      const result = await runCall(turn, egress, call);
      turn.signal.throwIfAborted();
      output.result(call, result.output, result.isError);
      return { callId: call.callId, toolName: call.toolName, ...result };
    }),
  );
}

async function runCall(
  turn: RunningTurn,
  egress: Egress,
  { callId, toolName, input, invalid }: MadeCall & { invalid?: string },
): Promise<Pick<ToolResult, 'output' | 'isError'>> {
  if (invalid !== undefined) return { output: invalid, isError: true };
  const tool = turn.claimed.config.tools.find((candidate): candidate is HttpTool => candidate.name === toolName);
  if (tool?.type !== 'http') return { output: `There is no tool named ${toolName}.`, isError: true };
  turn.assertRunning();
  return callHttpTool({
    tool,
    input,
    executionId: turn.owner.executionId,
    toolCallId: callId,
    egress,
    abortSignal: turn.signal,
  });
}
