import { toStorable } from '@turnkeep/shared/contract/text';
import type { FilePart, TextPart } from 'ai';

export interface HistoryAttachment {
  fileName: string;
  mimeType: string;
  sizeBytes: number;
  /** Reads the bytes, null where they are gone; called only where the model gets them. */
  load: () => Promise<Uint8Array | null>;
}

type AcceptsFile = (mimeType: string) => boolean;

/**
 * Bytes of attachments that one history gives at most: more than that no provider takes in a request, and a worker with many
 * turns could not hold it.
 */
const MAX_BYTES = 32 * 1024 * 1024;

/**
 * Of a session's attachments, oldest first, those whose content the model is given: the newest that fit together. The newest
 * of all is given whatever its size.
 */
export function newestOf(
  attachments: readonly HistoryAttachment[],
  acceptsFile: AcceptsFile,
  maxBytes = MAX_BYTES,
): Set<HistoryAttachment> {
  const given = new Set<HistoryAttachment>();
  let bytes = 0;
  for (const attachment of attachments.filter(({ mimeType }) => isShown(mimeType, acceptsFile)).reverse()) {
    bytes += attachment.sizeBytes;
    if (bytes > maxBytes && given.size > 0) break;
    given.add(attachment);
  }
  return given;
}

/**
 * A message's attachments as the model gets them: as files where the provider takes the type, `text/*`, JSON and XML as text, and
 * a note of name and type for the rest, so that the model can say that it cannot see it.
 * @param given those whose content is given, where it can be
 */
export function attachmentParts(
  attachments: readonly HistoryAttachment[],
  acceptsFile: AcceptsFile,
  given: ReadonlySet<HistoryAttachment>,
): Promise<(TextPart | FilePart)[]> {
  return Promise.all(
    attachments.map((attachment) => {
      if (!isShown(attachment.mimeType, acceptsFile)) return note(attachment, 'cannot be shown to this model');
      if (!given.has(attachment)) return note(attachment, 'is left out, since newer files take all the room');
      return attachmentPart(attachment, acceptsFile);
    }),
  );
}

async function attachmentPart(attachment: HistoryAttachment, acceptsFile: AcceptsFile): Promise<TextPart | FilePart> {
  const { fileName, mimeType } = attachment;
  const bytes = await attachment.load();
  if (bytes === null) return note(attachment, 'is gone');
  if (acceptsFile(mimeType)) {
    // As base64 and not as bytes: a run's context is stored as JSON.
    const data = Buffer.from(bytes).toString('base64');
    return { type: 'file', data: { type: 'data', data }, mediaType: mimeType, filename: fileName };
  }
  const text = toStorable(new TextDecoder().decode(bytes));
  return { type: 'text', text: `[Attached file ${fileName} (${mimeType})]\n${text}` };
}

/** Whether the model can get the content: as a file, or because it is text already. */
function isShown(mimeType: string, acceptsFile: AcceptsFile): boolean {
  return acceptsFile(mimeType) || /^text\/|[/+](json|xml)\b/i.test(mimeType);
}

function note({ fileName, mimeType, sizeBytes }: HistoryAttachment, what: string): TextPart {
  return { type: 'text', text: `[Attached file ${fileName} (${mimeType}, ${sizeBytes} bytes); its content ${what}.]` };
}
