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

/** Runs a script on one connection, statement by statement. */
export async function run(client: pg.PoolClient, script: Script, ids: Ids): Promise<void> {
  for (const statement of script) {
    const { text, values, name } = fill(statement, ids);
    if (name) await client.query({ name, text, values: values ?? [] });
    else if (values) await client.query(text, values);
    else await client.query(text);
  }
}

/** Runs a script on a connection of the pool. */
export async function runOn(pool: pg.Pool, script: Script, ids: Ids): Promise<void> {
  const client = await pool.connect();
  try {
    await run(client, script, ids);
  } catch (error) {
    await client.query('rollback');
    throw error;
  } finally {
    client.release();
  }
}

function fill(statement: Statement, ids: Ids): Statement {
  return mapStrings(statement, (text) =>
    text.includes('{{') ? text.replace(/\{\{(\w+)\}\}/g, (_, name: string) => ids[name] ?? '') : text,
  ) as Statement;
}

function mapStrings(value: unknown, map: (text: string) => string): unknown {
  if (typeof value === 'string') return map(value);
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, map));
  if (value === null || typeof value !== 'object' || Buffer.isBuffer(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapStrings(item, map)]));
}
