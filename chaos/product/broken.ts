/** One place of the compiled product that is changed. */
export interface Patch {
  /** Under `packages/`. */
  readonly file: string;
  /** Stands there exactly once. */
  readonly find: string;
  readonly replace: string;
}

export type BrokenName = 'no-fence' | 'no-unique-index' | 'steer-twice' | 'replay' | 'lost-wake';

/** Puts the message of an interrupted execution back at the end of the queue, as a job queue would. */
const REQUEUE = `await returnSteers(tx, executionId);
        await tx.query(\`with outcome as (
            delete from queue_outcomes o using executions e where e.id = $1 and o.queue_id = e.queue_id
            returning o.queue_id, o.message_id
          ), message as (
            update messages m set execution_id = null, first_execution_id = null, place_execution = null, place = null
            from outcome o where m.id = o.message_id
          ), numbered as (
            update sessions set next_position = next_position + 1 where id = $2 returning next_position - 1 as position
          )
          insert into queue_items (id, session_id, message_id, position)
          select o.queue_id, $2, o.message_id, n.position from outcome o, numbered n\`, [executionId, sessionId]);`;

/**
 * Builds that are broken on purpose, each in all the lines of defence of one guarantee, to show that the checker sees
 * it: the product itself has two where one would do, so taking away a single one changes nothing that can be seen.
 */
export const BROKEN: Readonly<Record<BrokenName, readonly Patch[]>> = {
  // A worker that lost its lease goes on writing.
  'no-fence': [
    {
      file: 'shared/dist/chat/record.js',
      find: "where id = $1 and worker_id = $2 and status = 'running' and lease_expires_at > clock_timestamp()",
      replace: 'where id = $1 and $2::text is not null',
    },
    {
      file: 'worker/dist/running-turn.js',
      find: 'return this.#leaseEndsAt - performance.now();',
      replace: 'return Number.POSITIVE_INFINITY;',
    },
    { file: 'worker/dist/leases.js', find: 'this.#turns.has(turn.owner.executionId)', replace: 'false' },
  ],
  // Nothing keeps a second execution of a session from starting.
  'no-unique-index': [
    {
      file: 'shared/dist/db/migrations/0001-foundation.js',
      find: 'create unique index executions_one_running',
      replace: 'create index executions_one_running',
    },
    { file: 'shared/dist/chat/claim.js', find: 'if (next.running || waits)', replace: 'if (waits)' },
  ],
  // A message that was steered in stays in the queue and starts again.
  'steer-twice': [
    {
      file: 'shared/dist/chat/steers.js',
      find: 'delete from queue_items where id = any($1)',
      replace: 'update queue_items set steering_execution_id = null, reserved_order = null where id = any($1)',
    },
    {
      file: 'shared/dist/chat/steers.js',
      find: "'steered', $4 from consumed",
      replace: "'steered', $4 from consumed on conflict do nothing",
    },
    {
      file: 'shared/dist/chat/claim.js',
      find: "values ($7, $2, $9, 'started', $1)",
      replace: "values ($7, $2, $9, 'started', $1) on conflict do nothing",
    },
  ],
  // The message of an interrupted execution is run again.
  replay: [{ file: 'shared/dist/chat/interrupt.js', find: 'await returnSteers(tx, executionId);', replace: REQUEUE }],
  // Nobody looks for sessions whose wake-up got lost.
  'lost-wake': [{ file: 'worker/dist/consumer.js', find: 'if (free <= 0)', replace: 'if (free <= Number.MAX_VALUE)' }],
};
