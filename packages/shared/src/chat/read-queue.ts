import type { QueueView } from '../contract/chat.js';
import type { Query } from '../db/database.js';
import { attachmentsOf } from './attachments.js';

/** A session's pending messages in their order, and the execution that accepts steers now (contract, section 6). */
export async function readQueue(db: Query, sessionId: string): Promise<QueueView> {
  const [row] = await db.query<QueueView>(
    `select (select id from executions where session_id = $1 and status = 'running' and steerable) as "steerableExecutionId",
       (select coalesce(json_agg(json_build_object('id', q.id, 'messageId', q.message_id, 'message', m.text,
          'attachments', ${attachmentsOf('m.id')}, 'createdAt', q.created_at,
          'steeringExecutionId', q.steering_execution_id) order by q.position), '[]'::json)
        from queue_items q join messages m on m.id = q.message_id where q.session_id = $1) as items`,
    [sessionId],
  );
  const view = row ?? { items: [], steerableExecutionId: null };
  return { ...view, items: view.items.map((item) => ({ ...item, createdAt: new Date(item.createdAt).toISOString() })) };
}
