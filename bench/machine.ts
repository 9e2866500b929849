import { cpus, loadavg, totalmem } from 'node:os';
import type { Redis } from 'ioredis';
import type pg from 'pg';

/** What the figures were measured on, as lines of Markdown. */
export async function describeMachine(pool: pg.Pool, redis: Redis): Promise<string[]> {
  const cores = cpus();
  const [load] = loadavg();
  return [
    `- ${new Date().toISOString().slice(0, 10)}, ${cores.length} cores (${cores[0]?.model.trim() ?? 'unknown'}), ` +
      `${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform} ${process.arch}, load ${load?.toFixed(1)} at the start`,
    `- Node ${process.versions.node}`,
    `- ${await describePostgres(pool)}`,
    `- ${await describeRedis(redis)}`,
  ];
}

async function describePostgres(pool: pg.Pool): Promise<string> {
  const names = ['server_version', 'fsync', 'synchronous_commit', 'full_page_writes'];
  const { rows } = await pool.query<{ name: string; setting: string }>(
    'select name, setting from pg_settings where name = any($1)',
    [names],
  );
  const settings = new Map(rows.map((row) => [row.name, row.setting]));
  const [version, ...durability] = names.map((name) => settings.get(name) ?? 'unknown');
  const isDurable = durability.every((setting) => setting === 'on');
  const shown = names.slice(1).map((name, index) => `${name}=${durability[index]}`);
  return `Postgres ${version}, ${isDurable ? 'durable' : 'not durable'} (${shown.join(', ')})`;
}

async function describeRedis(redis: Redis): Promise<string> {
  const version = /redis_version:(\S+)/.exec(await redis.info('server'))?.[1] ?? 'unknown';
  const [, appendOnly] = (await redis.config('GET', 'appendonly')) as string[];
  const [, fsync] = (await redis.config('GET', 'appendfsync')) as string[];
  return `Redis ${version}, ${appendOnly === 'yes' ? `append-only file, fsync ${fsync}` : 'memory only'}`;
}
