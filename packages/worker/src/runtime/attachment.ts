import { toStorable } from '@turnkeep/shared/contract/text';
import type { FilePart, TextPart } from 'ai';

export interface HistoryAttachment {
  fileName: string;
  mimeType: string;
  sizeBytes: number;
  /** Reads the bytes; called only where the model gets them. */
  load: () => Promise<Uint8Array>;
}

/**
 * A message's attachments as the model gets them: as files where the provider takes the type, `text/*` and JSON as text, and a
 * note of name and type for the rest, so that the model can say that it cannot see it.
 */
export function attachmentParts(
  attachments: readonly HistoryAttachment[],
  acceptsFile: (mimeType: string) => boolean,
): Promise<(TextPart | FilePart)[]> {
  return Promise.all(attachments.map((attachment) => attachmentPart(attachment, acceptsFile)));
}

async function attachmentPart(
  { fileName, mimeType, sizeBytes, load }: HistoryAttachment,
  acceptsFile: (mimeType: string) => boolean,
): Promise<TextPart | FilePart> {
  if (acceptsFile(mimeType)) {
    // As base64 and not as bytes: a run's context is stored as JSON.
    const data = Buffer.from(await load()).toString('base64');
    return { type: 'file', data: { type: 'data', data }, mediaType: mimeType, filename: fileName };
  }
  if (/^text\/|[/+]json\b/i.test(mimeType)) {
    const text = toStorable(new TextDecoder().decode(await load()));
    return { type: 'text', text: `[Attached file ${fileName} (${mimeType})]\n${text}` };
  }
  return {
    type: 'text',
    text: `[Attached file ${fileName} (${mimeType}, ${sizeBytes} bytes); its content cannot be shown to this model.]`,
  };
}
