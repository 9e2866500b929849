import type { AgentTool, McpTool } from '@turnkeep/shared/contract/agent';
import type { SuspensionKind } from '@turnkeep/shared/contract/execution';
import type { Frame } from './frame.js';
import type { JsonObject } from './runtime/json.js';
import type { McpToolOffer } from './runtime/mcp.js';
import type { ToolDefinition } from './runtime/step.js';

/** What stands behind a tool's name. */
export type Tool = Exclude<AgentTool, { type: 'mcp' }> | { type: 'mcp'; offer: McpToolOffer };

/** Arguments of a question card (contract, section 3). */
const QUESTION_INPUT = {
  type: 'object',
  properties: {
    question: { type: 'string' },
    choices: { type: 'array', items: { type: 'string' }, description: 'Answers to offer, if there are obvious ones.' },
    multiple: { type: 'boolean', description: 'Whether several choices may be taken.' },
  },
  required: ['question'],
};
const DELEGATE_INPUT = {
  type: 'object',
  properties: { task: { type: 'string', description: 'Everything that the other agent has to know and do.' } },
  required: ['task'],
};

/** The tools that a frame's agent offers its model, in the order of its list. */
export function offeredTools({ config, mcp }: Frame): ToolDefinition[] {
  return config.tools.flatMap((tool) => (tool.type === 'mcp' ? offersOf(tool, mcp) : [definitionOf(tool)]));
}

function offersOf(server: McpTool, mcp: McpToolOffer[]): ToolDefinition[] {
  return mcp
    .filter((offer) => offer.server.name === server.name)
    .map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
}

function definitionOf(tool: Exclude<AgentTool, McpTool>): ToolDefinition {
  const { name, description } = tool;
  if (tool.type === 'http') return { name, description, inputSchema: tool.inputSchema };
  if (tool.type === 'delegate') return { name, description, inputSchema: DELEGATE_INPUT };
  return { name, description: description || QUESTION, inputSchema: QUESTION_INPUT };
}

/** What is wrong with the arguments of a question card, for the model; null: a card can be made of them. */
export function questionFault({ question, choices, multiple }: JsonObject): string | null {
  if (typeof question !== 'string') return 'The argument question must be a text.';
  const isList = Array.isArray(choices) && choices.every((choice) => typeof choice === 'string');
  if (choices !== undefined && !isList) return 'The argument choices must be a list of texts.';
  if (multiple !== undefined && typeof multiple !== 'boolean') return 'The argument multiple must be true or false.';
  return null;
}

const QUESTION = 'Asks the user a question and waits for the answer.';

/** The tool of that name; undefined where the frame's agent has none. */
export function findTool({ config, mcp }: Frame, name: string): Tool | undefined {
  const offer = mcp.find((candidate) => candidate.name === name);
  if (offer) return { type: 'mcp', offer };
  const tool = config.tools.find((candidate) => candidate.name === name);
  return tool?.type === 'mcp' ? undefined : tool;
}

/** What a call of this tool waits for before it runs; null: nobody. */
export function waitsFor(tool: Tool): SuspensionKind | null {
  switch (tool.type) {
    case 'question':
      return 'question';
    case 'http':
      return tool.requireApproval ? 'approval' : null;
    case 'mcp':
      return tool.offer.requireApproval ? 'approval' : null;
    case 'delegate':
      return null;
  }
}
