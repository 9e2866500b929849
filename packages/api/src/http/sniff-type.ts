import { fileTypeFromBuffer } from 'file-type';

const decoder = new TextDecoder('utf-8', { fatal: true });

/** The type of some bytes by what they are (contract, section 5): never what a client says they are. */
export async function sniffType(data: Buffer): Promise<string> {
  const known = await fileTypeFromBuffer(data).catch(() => undefined);
  // Parameters are left out, and so is what file-type invents for containers it cannot look into.
  if (known) return known.mime.split(';')[0] ?? known.mime;
  return isText(data) ? 'text/plain' : 'application/octet-stream';
}

function isText(data: Buffer): boolean {
  if (data.includes(0)) return false;
  try {
    decoder.decode(data);
    return true;
  } catch {
    return false;
  }
}
