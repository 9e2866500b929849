import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Chat } from './chat.js';
import type { Cluster } from './cluster.js';
import { REPOSITORY } from './environment.js';
import type { TestDatabase } from './postgres.js';

type Row = Record<string, unknown>;

/** A suspended session as rows, parents before children. A checkpoint's `state` stands as the JSON that it is. */
interface Fixture {
  readonly version: number;
  readonly runId: string;
  readonly tables: readonly { readonly table: string; readonly rows: readonly Row[] }[];
}

const TABLES = [
  ['sessions', 'id', 'id'],
  ['executions', 'session_id', 'number'],
  ['messages', 'session_id', 'place_execution, place'],
  ['tool_calls', 'session_id', 'ordinal'],
] as const;

/** What differs between the installation that a fixture was made in and the one that it comes to. */
function placeholders(cluster: Cluster, chat: Chat): [string, string][] {
  return [
    ['{project}', chat.projectId],
    ['{agent}', chat.agentId],
    ['{user}', chat.user.id],
    ['{model}', cluster.model.baseUrl],
    ['{tools}', cluster.tools.url('').replace(/\/$/, '')],
  ];
}

const fileOf = (version: number) => join(REPOSITORY, 'test', 'fixtures', `checkpoint-v${version}.json`);

/** Writes the fixture of a checkpoint version from a run that waits; run once, when a release brings a new version. */
export async function saveFixture(cluster: Cluster, chat: Chat, sessionId: string, runId: string): Promise<void> {
  const { db } = cluster;
  const tables: { table: string; rows: Row[] }[] = [];
  for (const [table, key, order] of TABLES) {
    const rows = await rowsOf(db, `select * from ${table} where ${key} = $1 order by ${order}`, sessionId);
    tables.push({ table, rows: rows.map((row) => ('worker_id' in row ? { ...row, worker_id: 'gone' } : row)) });
  }
  const entries =
    'select e.* from entries e join messages m on m.id = e.message_id where m.session_id = $1 order by e.n';
  tables.push({ table: 'entries', rows: await rowsOf(db, entries, sessionId) });
  const checkpoints = await rowsOf(
    db,
    `select c.id, c.session_id, c.run_id, c.execution_id, c.status, c.version, c.created_at,
       convert_from(c.state, 'utf8')::json as state from checkpoints c where c.session_id = $1`,
    sessionId,
  );
  tables.push({ table: 'checkpoints', rows: checkpoints });
  const suspensions =
    'select s.* from suspensions s join checkpoints c on c.id = s.checkpoint_id where c.session_id = $1 order by s.ordinal';
  tables.push({ table: 'suspensions', rows: await rowsOf(db, suspensions, sessionId) });
  const version = Number(checkpoints[0]?.version);
  let text = JSON.stringify({ version, runId, tables }, null, 2);
  for (const [name, value] of placeholders(cluster, chat)) text = text.replaceAll(value, name);
  await writeFile(fileOf(version), `${text}\n`);
}

/** Puts the fixture of a version into a cluster's database as a session of this chat; answers with what it waits for. */
export async function insertFixture(
  cluster: Cluster,
  chat: Chat,
  version: number,
): Promise<{ sessionId: string; runId: string; calls: { id: string; kind: string }[] }> {
  let text = await readFile(fileOf(version), 'utf8');
  for (const [name, value] of placeholders(cluster, chat)) text = text.replaceAll(name, value);
  const { runId, tables } = JSON.parse(text) as Fixture;
  for (const { table, rows } of tables) for (const row of rows) await insertRow(cluster.db, table, row);
  const of = (table: string) => tables.find((one) => one.table === table)?.rows ?? [];
  return {
    sessionId: String(of('sessions')[0]?.id),
    runId,
    calls: of('suspensions').map((row) => ({ id: String(row.tool_call_id), kind: String(row.kind) })),
  };
}

async function rowsOf(db: TestDatabase, sql: string, id: string): Promise<Row[]> {
  return (await db.query<{ row: Row }>(`select row_to_json(r) as row from (${sql}) r`, [id])).map(({ row }) => row);
}

/** Only the columns that the fixture has: later releases may add others, which then get their defaults. */
async function insertRow(db: TestDatabase, table: string, row: Row): Promise<void> {
  const columns = Object.keys(row).join(', ');
  const { state, ...rest } = row;
  const isCheckpoint = table === 'checkpoints';
  const values = isCheckpoint ? { ...rest, state: `\\x${Buffer.from(JSON.stringify(state)).toString('hex')}` } : row;
  await db.query(`insert into ${table} (${columns}) select ${columns} from json_populate_record(null::${table}, $1)`, [
    JSON.stringify(values),
  ]);
}
