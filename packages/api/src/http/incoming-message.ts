import type { IncomingAttachment, NewAttachment } from '@turnkeep/shared/chat/attachments';
import type { Limits } from '@turnkeep/shared/config';
import type { ChatRequest, ResumeRequest } from '@turnkeep/shared/contract/chat';
import { type FieldError, ProblemError } from '@turnkeep/shared/contract/problems';
import { countCodePoints } from '@turnkeep/shared/contract/text';
import { sniffType } from './sniff-type.js';

/** What a message says and brings, once it has passed the limits of contract section 1. */
export interface IncomingMessage {
  text: string;
  attachments: IncomingAttachment[];
}

/**
 * Checks a message against the configured limits, and decodes and sniffs its attachments.
 * @throws ProblemError `invalid_request` with pointers; `payload_too_large` for an attachment that is too large
 */
export async function readMessage(
  { message, attachments = [] }: Pick<ChatRequest, 'message' | 'attachments'>,
  limits: Limits,
): Promise<IncomingMessage> {
  checkText(message, limits.maxMessageChars);
  if (message === '' && attachments.length === 0) refuse('/message', 'must not be empty without an attachment');
  if (attachments.length > limits.maxAttachments)
    refuse('/attachments', `must have at most ${limits.maxAttachments} items`);
  const incoming: IncomingAttachment[] = [];
  for (const [index, attachment] of attachments.entries()) {
    if ('attachmentId' in attachment) {
      const attachmentId = attachment.attachmentId.toLowerCase();
      if (incoming.some((other) => 'attachmentId' in other && other.attachmentId === attachmentId))
        refuse(`/attachments/${index}/attachmentId`, 'must be named once');
      incoming.push({ title: '', attachmentId });
      continue;
    }
    const { fileName, data } = attachment;
    incoming.push(await readFile(fileName, Buffer.from(data, 'base64'), limits, `/attachments/${index}/data`));
  }
  return { text: message, attachments: incoming };
}

/** A message's text, or an edit of it. */
export function checkText(text: string, maxChars: number): void {
  if (text.length > maxChars && countCodePoints(text) > maxChars)
    refuse('/message', `must have at most ${maxChars} characters`);
}

/** A typed answer to a question card is text of a user like a message. */
export function checkAnswer(data: ResumeRequest['resumeData'], maxChars: number): void {
  if ('answer' in data && data.answer.length > maxChars && countCodePoints(data.answer) > maxChars)
    refuse('/resumeData/answer', `must have at most ${maxChars} characters`);
}

/** One file, its type as sniffed and not as said. */
export async function readFile(
  fileName: string,
  data: Buffer,
  limits: Limits,
  pointer: string,
): Promise<NewAttachment> {
  if (data.length > limits.maxAttachmentBytes)
    throw new ProblemError('payload_too_large', `An attachment may have at most ${limits.maxAttachmentBytes} bytes.`);
  if (data.length === 0) refuse(pointer, 'must not be empty');
  return { title: fileName, fileName, mimeType: await sniffType(data), data };
}

function refuse(pointer: string, message: string): never {
  const errors: FieldError[] = [{ pointer, message }];
  throw new ProblemError('invalid_request', 'The body is not valid.', { errors });
}
