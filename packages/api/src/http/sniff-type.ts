import { fileTypeFromBuffer } from 'file-type';

const decoder = new TextDecoder('utf-8', { fatal: true });

/** What no text holds: control characters but for white space and escape, in bytes below 0x20. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\u0000-\u0008\u000e-\u001a\u001c-\u001f\u007f]/;

/** Formats that are text by themselves, so that a signature in text means them. */
const TEXTUAL = /^text\/|[/+]xml$|^application\/(pdf|rtf|postscript|eps)$/;

/**
 * The type of some bytes by what they are (contract, section 5): never what a client says they are. What is not recognised is
 * `text/plain` where it is UTF-8 text, else `application/octet-stream`.
 *
 * Some signatures are two or three letters long ('BM', 'GIF', 'MZ'), and texts begin with those too: what is text
 * throughout is none of those formats, which all hold bytes that no text holds.
 */
export async function sniffType(data: Buffer): Promise<string> {
  // What file-type cannot read to its end, it throws at.
  const known = await fileTypeFromBuffer(data).catch(() => undefined);
  // Parameters are left out.
  const type = isUtf16(data) ? undefined : known?.mime.split(';')[0];
  const text = textOf(data);
  if (type !== undefined && (text === null || CONTROL.test(text) || TEXTUAL.test(type))) return type;
  return text !== null && !text.includes('\0') ? 'text/plain' : 'application/octet-stream';
}

/** The byte order mark of UTF-16, as editors write it, looks like the beginning of an MP3. */
function isUtf16(data: Buffer): boolean {
  return (data[0] === 0xff && data[1] === 0xfe) || (data[0] === 0xfe && data[1] === 0xff);
}

function textOf(data: Buffer): string | null {
  try {
    return decoder.decode(data);
  } catch {
    return null;
  }
}
