import { createHash } from 'node:crypto';
import type { McpTool } from '@turnkeep/shared/contract/agent';
import { takeCodePoints, toStorable } from '@turnkeep/shared/contract/text';
import { isJsonObject, type JsonValue, storableJson } from './json.js';

/** A tool of an MCP server, as an agent offers it to the model. */
export interface McpToolOffer {
  /** `<server>__<tool>`, what the model calls. */
  name: string;
  /** The agent's entry. */
  server: McpTool;
  serverToolName: string;
  description: string;
  inputSchema: Record<string, unknown>;
  requireApproval: boolean;
}

/** A tool as a server listed it, made storable and bounded. */
export interface ListedTool {
  name: string;
  description: string;
  inputSchema: Record<string, unknown>;
}

/** What every provider takes as a tool's name: 64 of [a-zA-Z0-9_-]. */
const MAX_NAME_CHARS = 64;
const HASH_CHARS = 8;
const MAX_SERVER_NAME_CHARS = 200;
/** As for the tools that an agent's configuration describes itself. */
const MAX_DESCRIPTION_CHARS = 10_000;
const MAX_SCHEMA_CHARS = 100_000;

/**
 * A tool of a listing; `undefined` where the server's name for it cannot be kept. A schema that is no object schema, or is too
 * large, becomes one that allows every object: the server checks arguments anyway.
 */
export function listedTool(tool: { name: string; description?: string; inputSchema: unknown }): ListedTool | undefined {
  const { name } = tool;
  if (name === '' || name.length > MAX_SERVER_NAME_CHARS || name !== toStorable(name)) return undefined;
  const description = takeCodePoints(toStorable(tool.description ?? ''), MAX_DESCRIPTION_CHARS);
  return { name, description, inputSchema: usableSchema(tool.inputSchema) };
}

function usableSchema(schema: unknown): Record<string, unknown> {
  const storable = storableJson(schema as JsonValue);
  if (!isJsonObject(storable) || storable.type !== 'object') return { type: 'object' };
  return JSON.stringify(storable).length > MAX_SCHEMA_CHARS ? { type: 'object' } : storable;
}

/**
 * Offers a server's tools under names that are not in `taken`, and adds them there. A name depends on the server's and the tool's
 * alone wherever it can, so that a run finds its tools again after a suspension, whatever else the server has by then.
 */
export function offersOf(server: McpTool, tools: readonly ListedTool[], taken: Set<string>): McpToolOffer[] {
  return tools.map(({ name, description, inputSchema }) => {
    const offered = offeredName(server.name, name, taken);
    taken.add(offered);
    const requireApproval = waitsForApproval(server, name);
    return { name: offered, server, serverToolName: name, description, inputSchema, requireApproval };
  });
}

function waitsForApproval({ requireApproval }: McpTool, tool: string): boolean {
  return typeof requireApproval === 'boolean' ? requireApproval : requireApproval.includes(tool);
}

/** `<server>__<tool>`; with a hash where that had to be cut or cleaned, or is taken. */
function offeredName(server: string, tool: string, taken: ReadonlySet<string>): string {
  const whole = `${server}__${tool}`;
  const clean = whole.replace(/[^a-zA-Z0-9_-]/gu, '_');
  if (clean === whole && clean.length <= MAX_NAME_CHARS && !taken.has(clean)) return clean;
  for (let attempt = 0; ; attempt += 1) {
    const hash = createHash('sha256')
      .update(JSON.stringify([server, tool, attempt]))
      .digest('hex');
    const name = `${clean.slice(0, MAX_NAME_CHARS - HASH_CHARS - 1)}_${hash.slice(0, HASH_CHARS)}`;
    if (!taken.has(name)) return name;
  }
}
