import { randomUUID } from 'node:crypto';
import type { Chat } from './chat.js';
import type { HttpResponse } from './http.js';
import type { EventData } from './sse-parser.js';

/** A picture of one pixel. */
export const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
export const TEXT = Buffer.from('Zwölf Boxkämpfer\n');

/** What an upload and every view of an attachment answer. */
export interface Sent {
  readonly attachmentId: string;
  readonly fileName: string;
  readonly mimeType: string;
  readonly sizeBytes: number;
}

/** A file as a message brings it. */
export function inline(bytes: Buffer, fileName = 'file.txt', mimeType = 'text/plain'): Record<string, unknown> {
  return { fileName, mimeType, data: bytes.toString('base64') };
}

/** The attachments that `execution-started` shows. */
export function startedWith(turn: { of(type: string): EventData[] }): readonly Sent[] {
  const [started] = turn.of('execution-started') as { message?: { attachments: Sent[] } }[];
  return started?.message?.attachments ?? [];
}

/**
 * Sends one file as a form does.
 * @param disposition what stands after `name="file"; ` in its Content-Disposition
 */
export function upload(
  chat: Chat,
  bytes: Buffer,
  { disposition = 'filename="notes.txt"', mimeType = 'text/plain', main = 0 } = {},
): Promise<HttpResponse> {
  const boundary = `b${randomUUID()}`;
  const head =
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; ${disposition}\r\n` +
    `Content-Type: ${mimeType}\r\n\r\n`;
  const body = Buffer.concat([Buffer.from(head), bytes, Buffer.from(`\r\n--${boundary}--\r\n`)]);
  const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` };
  return chat.http(main).post(chat.path('/attachments'), body, { headers });
}

/** The bytes of an attachment, with their headers. */
export function download(chat: Chat, attachmentId: string, main = 0): Promise<HttpResponse> {
  return chat.http(main).get(chat.path(`/attachments/${attachmentId}`));
}
