import { takeCodePoints } from '../contract/text.js';
import type { Query } from '../db/database.js';

/** How much of the first message becomes a session's title, in code points. */
const TITLE_CHARS = 100;

/** A session's title: the beginning of its first message, or the name of what came with it (contract, section 5). */
export function titleOf(text: string, fileName: string): string {
  const trimmed = text.trim();
  return takeCodePoints(trimmed === '' ? fileName : trimmed, TITLE_CHARS);
}

/**
 * Makes the title say again what the first message says, after that was edited or removed: of a removed message no text
 * stays. Under the session lock.
 */
export async function retitle(tx: Query, sessionId: string): Promise<void> {
  const [first] = await tx.query<{ text: string; fileName: string | null }>(
    `select m.text, (select f.file_name from attachments f where f.message_id = m.id order by f.ordinal limit 1) as "fileName"
     from messages m where m.session_id = $1 and m.role = 'user' order by m.created_at, m.id limit 1`,
    [sessionId],
  );
  const title = titleOf(first?.text ?? '', first?.fileName ?? '');
  await tx.query('update sessions set title = $2 where id = $1 and title <> $2', [sessionId, title]);
}
