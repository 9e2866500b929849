import type { ChatSession } from '../workload/chats.js';
import { ask } from '../workload/http.js';

/** One message of a transcript, as far as the checker needs it. */
export interface TranscriptText {
  readonly id: string;
  readonly role: string;
  readonly executionId: string;
  readonly status: string | undefined;
  readonly text: string;
}

interface Page {
  readonly messages: readonly {
    readonly id: string;
    readonly role: string;
    readonly executionId: string;
    readonly status?: string;
    readonly content: readonly { readonly type: string; readonly text?: string }[];
  }[];
}

/**
 * Reads the transcripts of sessions as a client does.
 * @returns by session; without those that answer 404: deleted, or never begun
 */
export async function readTranscripts(
  baseUrl: string,
  sessions: Iterable<ChatSession>,
): Promise<Map<string, readonly TranscriptText[]>> {
  const transcripts = new Map<string, readonly TranscriptText[]>();
  for (const { id, seat } of sessions) {
    const { outcome, body } = await ask({
      method: 'GET',
      url: `${baseUrl}${seat.path}/${id}/messages`,
      token: seat.token,
    });
    if (outcome.kind === 'ok') transcripts.set(id, (body as unknown as Page).messages.map(toText));
    else if (outcome.kind === 'unknown') throw new Error(`The transcript of ${id} cannot be read: ${outcome.why}`);
  }
  return transcripts;
}

function toText({ id, role, executionId, status, content }: Page['messages'][number]): TranscriptText {
  const text = content.map((part) => (part.type === 'text' ? (part.text ?? '') : '')).join('');
  return { id, role, executionId, status, text };
}
