import type { CallToolResult } from '@ai-sdk/mcp';
import type { ToolOutcome } from './http-tool.js';
import { type JsonValue, storableJson } from './json.js';

type Part = { type: string; [key: string]: unknown };

/**
 * What an MCP tool answered, as a storable output (contract section 8): `structuredContent` where it has any; else text where all
 * parts are text, with a note in place of images and other bytes; else the parts as JSON. `isError` is the server's.
 */
export function outcomeOf(result: CallToolResult): ToolOutcome {
  const output = storableJson(answerOf(result));
  if (output === undefined) return { output: 'The tool answered with JSON that nests too deep.', isError: true };
  return { output, isError: result.isError === true };
}

function answerOf(result: CallToolResult): JsonValue {
  if (result.structuredContent !== undefined) return result.structuredContent as JsonValue;
  if (Array.isArray(result.content)) return contentOf(result.content as Part[]);
  return (result.toolResult ?? '') as JsonValue;
}

function contentOf(parts: Part[]): JsonValue {
  const shown = parts.map(showPart);
  return shown.every((part) => typeof part === 'string') ? shown.join('\n') : shown;
}

/** A string for what is text, or is told in words; else the part itself, without its bytes. */
function showPart(part: Part): JsonValue {
  if (part.type === 'text') return String(part.text);
  if (typeof part.data === 'string') return note(part.mimeType, part.data);
  const resource = part.type === 'resource' ? (part.resource as Record<string, unknown>) : undefined;
  if (resource !== undefined && typeof resource.blob === 'string') return note(resource.mimeType, resource.blob);
  return part as unknown as JsonValue;
}

function note(mimeType: unknown, base64: string): string {
  const type = typeof mimeType === 'string' && mimeType !== '' ? mimeType.slice(0, 100) : 'unknown';
  return `[A file of type ${type} with ${Buffer.byteLength(base64, 'base64')} bytes; not shown.]`;
}
