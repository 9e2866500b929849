import { McpConnection, type McpConnectionOptions } from './mcp-connection.js';
import { type ListedTool, listedTool } from './mcp-offer.js';

/** More than a model can choose from, and an end to a server that pages for ever. */
const MAX_TOOLS = 200;
const MAX_PAGES = 10;
/** Descriptions and schemas of one server in characters of JSON: they go out with every model request. */
const MAX_LISTING_CHARS = 1_000_000;

/** What a server lists. */
export interface ServerListing {
  tools: ListedTool[];
  /** The server has more than may be offered. */
  isCut: boolean;
  /** The server speaks a protocol version before 2026. */
  isLegacy: boolean;
}

/** Asks a server for its tools, on a connection of its own. Errors: as `McpConnection.open`. */
export async function listServer(options: McpConnectionOptions): Promise<ServerListing> {
  const connection = await McpConnection.open(options);
  try {
    return { ...(await readPages(connection, options.signal)), isLegacy: connection.protocolVersion < '2026' };
  } finally {
    // Not waited for: the tools are there, and the end of a session may take a slow server seconds.
    options.onFarewell(connection.close());
  }
}

async function readPages(connection: McpConnection, signal: AbortSignal): Promise<Omit<ServerListing, 'isLegacy'>> {
  const tools = new Map<string, ListedTool>();
  let chars = 0;
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const listed = await connection.listPage(cursor, signal);
    for (const raw of listed.tools) {
      const tool = listedTool(raw as Parameters<typeof listedTool>[0]);
      if (tool === undefined || tools.has(tool.name)) continue;
      chars += JSON.stringify(tool).length;
      if (tools.size === MAX_TOOLS || chars > MAX_LISTING_CHARS) return { tools: [...tools.values()], isCut: true };
      tools.set(tool.name, tool);
    }
    if (listed.nextCursor === undefined || listed.nextCursor === cursor) break;
    if (page === MAX_PAGES - 1) return { tools: [...tools.values()], isCut: true };
    cursor = listed.nextCursor;
  }
  return { tools: [...tools.values()], isCut: false };
}
