import pg from 'pg';

/** A statement as `pg` was given it. */
export interface Statement {
  text: string;
  /** Undefined for a statement that was sent in the simple protocol. */
  values?: unknown[];
  /** Set for a prepared statement. */
  name?: string;
}

/** Statements in the order in which the product sends them, with the ids of one turn as `{{name}}`. */
export type Script = Statement[];

/** The ids and texts of one turn by their names. */
export type Ids = Record<string, string>;

/**
 * Runs `work` and answers what it has sent to Postgres, with each value of `ids` that occurs anywhere as `{{name}}`. So the
 * bare side runs the statements of the product as they are today, and nothing else of it.
 * @param ids called after `work`: some ids are known only then
 */
export async function record(work: () => Promise<unknown>, ids: () => Ids): Promise<Script> {
  const script: Script = [];
  const { query } = pg.Client.prototype;
  const recording = function (this: pg.Client, ...args: unknown[]): unknown {
    script.push(statementOf(args));
    return (query as (...args: unknown[]) => unknown).apply(this, args);
  };
  pg.Client.prototype.query = recording as typeof query;
  try {
    await work();
  } finally {
    pg.Client.prototype.query = query;
  }
  const names = new Map(Object.entries(ids()).map(([name, value]) => [value, `{{${name}}}`]));
  return script.map((statement) => mapStrings(statement, (text) => replaceAll(text, names)) as Statement);
}

function statementOf([query, values]: unknown[]): Statement {
  if (typeof query === 'string') return values ? { text: query, values: values as unknown[] } : { text: query };
  const { text, name, values: own } = query as Statement;
  const all = own ?? (values as unknown[] | undefined);
  return { text, ...(all ? { values: all } : {}), ...(name ? { name } : {}) };
}

function replaceAll(text: string, replacements: Map<string, string>): string {
  let replaced = text;
  for (const [from, to] of replacements) replaced = replaced.replaceAll(from, to);
  return replaced;
}

/** A script that is ready to run: what is the same for every turn is worked out beforehand, so that running costs little. */
export type Prepared = ((client: pg.PoolClient, ids: Ids) => Promise<unknown>)[];

export function prepare(script: Script): Prepared {
  return script.map(({ text, values, name }) => {
    const textOf = filler(text) as (ids: Ids) => string;
    if (!values) return (client, ids) => client.query(textOf(ids));
    const fillers = values.map(filler);
    const all = (ids: Ids) => fillers.map((fill) => fill(ids));
    if (name) return (client, ids) => client.query({ name, text, values: all(ids) });
    return (client, ids) => client.query(text, all(ids));
  });
}

/** Runs a script on a connection of the pool, statement by statement. */
export async function runOn(pool: pg.Pool, script: Prepared, ids: Ids): Promise<void> {
  const client = await pool.connect();
  try {
    for (const send of script) await send(client, ids);
  } catch (error) {
    await client.query('rollback');
    throw error;
  } finally {
    client.release();
  }
}

const NAME = /\{\{(\w+)\}\}/;

function filler(value: unknown): (ids: Ids) => unknown {
  if (typeof value === 'string' && NAME.test(value)) {
    // Every second part is a name.
    const parts = value.split(NAME);
    return (ids) => parts.map((part, index) => (index % 2 === 1 ? (ids[part] ?? '') : part)).join('');
  }
  if (!Array.isArray(value)) return () => value;
  const fillers = value.map(filler);
  return (ids) => fillers.map((fill) => fill(ids));
}

function mapStrings(value: unknown, map: (text: string) => string): unknown {
  if (typeof value === 'string') return map(value);
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, map));
  if (value === null || typeof value !== 'object' || Buffer.isBuffer(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapStrings(item, map)]));
}
