import type { Sides } from '../sides.js';

/** What Redis and Postgres were made to do, by whomever. */
export interface Work {
  redisCommands: number;
  redisBytes: number;
  transactions: number;
  walBytes: number;
}

/** Postgres' own statistics of a connection that is busy come late, by at most this, in ms. */
const LATE_MS = 1_100;

/** Runs something and answers what Redis and Postgres did meanwhile. */
export async function workOf<T>(sides: Sides, run: () => Promise<T>): Promise<{ result: T; work: Work }> {
  const before = await read(sides);
  const result = await run();
  await new Promise((resolve) => setTimeout(resolve, LATE_MS));
  const after = await read(sides);
  return {
    result,
    work: {
      redisCommands: after.redisCommands - before.redisCommands,
      redisBytes: after.redisBytes - before.redisBytes,
      transactions: after.transactions - before.transactions,
      walBytes: after.walBytes - before.walBytes,
    },
  };
}

async function read({ pool, redis }: Sides): Promise<Work> {
  const stats = await redis.info('stats');
  const number = (name: string) => Number(new RegExp(`${name}:(\\d+)`).exec(stats)?.[1] ?? Number.NaN);
  const { rows } = await pool.query<{ transactions: string; wal: string }>(
    `select (select sum(xact_commit) from pg_stat_database) as transactions, pg_current_wal_lsn() - '0/0'::pg_lsn as wal`,
  );
  return {
    redisCommands: number('total_commands_processed'),
    redisBytes: number('total_net_input_bytes'),
    transactions: Number(rows[0]?.transactions),
    walBytes: Number(rows[0]?.wal),
  };
}
