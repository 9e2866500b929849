import { Ajv2020 } from 'ajv/dist/2020.js';
import type { AgentConfigInput } from './agent.js';
import type { FieldError } from './problems.js';

/**
 * What the schema of an agent's configuration cannot say (section 3): tool names are unique in the agent, an HTTP tool's
 * `inputSchema` is an object schema that compiles, URLs are http or https without user and password, and `openai-compatible` has a
 * `baseUrl`. Takes a configuration that fits `AgentConfigInput`; answers with the errors, pointers relative to the configuration.
 * Whether an address may be reached is not decided here but at connect time.
 */
export function checkAgentConfig(config: AgentConfigInput): FieldError[] {
  return [...checkModel(config), ...checkNames(config), ...checkTools(config)];
}

function checkModel({ model }: AgentConfigInput): FieldError[] {
  if (model.baseUrl !== undefined) return checkUrl(model.baseUrl, '/model/baseUrl');
  return model.provider === 'openai-compatible'
    ? [{ pointer: '/model/baseUrl', message: 'is required for openai-compatible' }]
    : [];
}

function checkNames({ tools = [] }: AgentConfigInput): FieldError[] {
  const seen = new Set<string>();
  return tools.flatMap(({ name }, index) => {
    if (!seen.has(name)) {
      seen.add(name);
      return [];
    }
    return [{ pointer: `/tools/${index}/name`, message: 'is the name of an earlier tool' }];
  });
}

function checkTools({ tools = [] }: AgentConfigInput): FieldError[] {
  return tools.flatMap((tool, index) => {
    const at = `/tools/${index}`;
    if (tool.type === 'http') {
      return [...checkUrl(tool.url, `${at}/url`), ...checkInputSchema(tool.inputSchema, `${at}/inputSchema`)];
    }
    return tool.type === 'mcp' ? checkUrl(tool.url, `${at}/url`) : [];
  });
}

function checkUrl(text: string, pointer: string): FieldError[] {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return [{ pointer, message: 'must be a URL' }];
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return [{ pointer, message: 'must be http or https' }];
  // A URL is shown to every reader of the agent; a secret belongs into a credential.
  if (url.username !== '' || url.password !== '') return [{ pointer, message: 'must hold no user and no password' }];
  return [];
}

/** A schema is sent with every model request; one above this many characters of JSON is a mistake. */
const maxInputSchemaChars = 100_000;

function checkInputSchema(schema: Record<string, unknown>, pointer: string): FieldError[] {
  if (schema.type !== 'object') return [{ pointer: `${pointer}/type`, message: 'must be "object"' }];
  if (JSON.stringify(schema).length > maxInputSchemaChars) {
    return [{ pointer, message: `must be at most ${maxInputSchemaChars} characters of JSON` }];
  }
  // ajv's own message may quote the schema at length.
  return compiles(schema) ? [] : [{ pointer, message: 'must be a JSON Schema (2020-12) that stands on its own' }];
}

/** Checks schemas against the meta-schema, which it compiles once: 10 ms that a fresh instance would pay for each tool. */
const metaAjv = new Ajv2020({ strict: false, logger: false, validateFormats: false });

// Unknown keywords and formats are let through, as JSON Schema says. A fresh ajv compiles, so that one tool's `$id`s never meet
// another's. Arguments are not run through the result: a `pattern` of a hostile schema could hold a worker's event loop for minutes.
function compiles({ $schema: _dialect, ...schema }: Record<string, unknown>): boolean {
  if (metaAjv.validateSchema(schema) !== true) return false;
  const options = { strict: false, logger: false, validateFormats: false, meta: false, validateSchema: false } as const;
  try {
    new Ajv2020(options).compile(schema);
    return true;
  } catch {
    return false;
  }
}
