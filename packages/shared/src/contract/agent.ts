/** Agents: section 3. What a request may leave out is filled by `withDefaults` when an agent is saved. */
import Type, { type Static } from 'typebox';
import { closed, Id, Name, open, Timestamp, tagged } from './schema.js';

/** The defaults of section 3. */
export const defaultLimits = { maxSteps: 20, maxDurationMs: 600_000, maxToolOutputChars: 100_000 } as const;
const defaultTimeoutMs = 30_000;

const ToolName = Type.String({ pattern: '^[a-zA-Z][a-zA-Z0-9_-]{0,63}$', description: 'Unique in the agent.' });
const Description = Type.String({
  maxLength: 10_000,
  default: '',
  description: 'Tells the model what the tool is for.',
});
const Url = Type.String({ minLength: 1, maxLength: 2_000, description: 'http or https, without user and password.' });
const InputSchema = Type.Unsafe<Record<string, unknown>>({
  type: 'object',
  description: 'JSON Schema (2020-12) of the arguments; its `type` is `object`.',
});

export type HttpMethod = Static<typeof HttpMethod>;
export const HttpMethod = Type.Enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']);

export type Provider = Static<typeof Provider>;
export const Provider = Type.Enum(['openai-compatible', 'openai', 'anthropic', 'google', 'demo']);

export type AgentModel = Static<typeof AgentModel>;
export const AgentModel = closed('AgentModel', {
  provider: Provider,
  model: Type.String({ minLength: 1, maxLength: 200 }),
  baseUrl: Type.Optional(
    Type.String({ ...Url, description: 'Required for openai-compatible; http or https, without user and password.' }),
  ),
  credentialId: Type.Optional(Id),
});

const HttpToolInput = closed('HttpTool', {
  type: Type.Literal('http'),
  name: ToolName,
  description: Type.Optional(Description),
  inputSchema: InputSchema,
  method: Type.Optional(Type.Enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], { default: 'POST' })),
  url: Url,
  requireApproval: Type.Optional(Type.Boolean({ default: false })),
  timeoutMs: Type.Optional(Type.Integer({ minimum: 1, maximum: 600_000, default: defaultTimeoutMs })),
});

const McpToolInput = closed('McpTool', {
  type: Type.Literal('mcp'),
  name: ToolName,
  url: Url,
  requireApproval: Type.Optional(
    Type.Union([Type.Boolean(), Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { maxItems: 1_000 })], {
      default: [],
      description: "The server's own names of the tools whose calls wait for an approval; `true`: all of them.",
    }),
  ),
});

const QuestionToolInput = closed('QuestionTool', {
  type: Type.Literal('question'),
  name: ToolName,
  description: Type.Optional(Description),
});

const DelegateToolInput = closed('DelegateTool', {
  type: Type.Literal('delegate'),
  name: ToolName,
  description: Type.Optional(Description),
  agentId: Id,
});

export type AgentToolInput = Static<typeof AgentToolInput>;
export const AgentToolInput = tagged(
  'type',
  [HttpToolInput, McpToolInput, QuestionToolInput, DelegateToolInput],
  'AgentTool',
);

const LimitsInput = closed('AgentLimits', {
  maxSteps: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000,
      default: defaultLimits.maxSteps,
      description: 'Model requests over a run, delegates included.',
    }),
  ),
  maxDurationMs: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 86_400_000,
      default: defaultLimits.maxDurationMs,
      description: 'For each execution.',
    }),
  ),
  maxToolOutputChars: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 10_000_000,
      default: defaultLimits.maxToolOutputChars,
      description: 'What the model sees of an output, in code points.',
    }),
  ),
});

/** A configuration as a request gives it. `checkAgentConfig` checks what the schema cannot say. */
export type AgentConfigInput = Static<typeof AgentConfigInput>;
export const AgentConfigInput = closed('AgentConfig', {
  instructions: Type.String({ maxLength: 200_000 }),
  model: AgentModel,
  tools: Type.Optional(Type.Array(AgentToolInput, { maxItems: 100, default: [] })),
  limits: Type.Optional(LimitsInput),
});

export type HttpTool = Static<typeof HttpTool>;
export const HttpTool = Type.Required(HttpToolInput);
export type McpTool = Static<typeof McpTool>;
export const McpTool = Type.Required(McpToolInput);
export type QuestionTool = Static<typeof QuestionTool>;
export const QuestionTool = Type.Required(QuestionToolInput);
export type DelegateTool = Static<typeof DelegateTool>;
export const DelegateTool = Type.Required(DelegateToolInput);
export type AgentTool = HttpTool | McpTool | QuestionTool | DelegateTool;
export type AgentLimits = Required<Static<typeof LimitsInput>>;

/** A configuration with every default filled in: what is stored, shown and run. It is a valid `AgentConfigInput` too. */
export type AgentConfig = { instructions: string; model: AgentModel; tools: AgentTool[]; limits: AgentLimits };

export type CreateAgent = Static<typeof CreateAgent>;
export const CreateAgent = closed('CreateAgent', { name: Name, config: AgentConfigInput });

export type AgentView = { id: string; name: string; config: AgentConfig; createdAt: string; updatedAt: string };
export const AgentView = Type.Unsafe<AgentView>(
  open('Agent', { id: Id, name: Type.String(), config: AgentConfigInput, createdAt: Timestamp, updatedAt: Timestamp }),
);

export type AgentList = Static<typeof AgentList>;
export const AgentList = open('AgentList', { agents: Type.Array(AgentView) });

/** Fills what a request left out with the defaults of section 3. Saving its result again changes nothing. */
export function withDefaults(config: AgentConfigInput): AgentConfig {
  return {
    instructions: config.instructions,
    model: config.model,
    tools: (config.tools ?? []).map(completeTool),
    limits: { ...defaultLimits, ...config.limits },
  };
}

function completeTool(tool: AgentToolInput): AgentTool {
  switch (tool.type) {
    case 'http':
      return { description: '', method: 'POST', requireApproval: false, timeoutMs: defaultTimeoutMs, ...tool };
    case 'mcp':
      return { requireApproval: [], ...tool };
    case 'question':
    case 'delegate':
      return { description: '', ...tool };
  }
}

/** What the schema cannot say; see there. */
export { checkAgentConfig } from './check-agent.js';
