import pg from 'pg';
import { PreparedNames } from './prepared.js';

/** Anything that runs SQL: the pool, or one transaction. */
export interface Query {
  /** Runs one statement and answers its rows. Throws `DatabaseAway` where Postgres could not be asked. */
  query<Row = Record<string, unknown>>(sql: string, values?: readonly unknown[]): Promise<Row[]>;
}

/**
 * Postgres could not be reached, or broke off. What was asked may or may not have been committed
 * (contract, section 4: "A 503 may have been committed").
 */
export class DatabaseAway extends Error {
  constructor(cause: unknown) {
    super('Postgres is away', { cause });
    this.name = 'DatabaseAway';
  }
}

/** A session's row, as its lock hands it out. */
export interface SessionRow {
  id: string;
  project_id: string;
  agent_id: string;
  user_id: string;
  status: 'idle' | 'queued' | 'running' | 'suspended';
  execution_count: number;
  next_position: number;
}

interface Transaction extends Query {
  locked: SessionRow | null;
}

/** How long one statement may take before the connection counts as dead, in ms. */
const STATEMENT_MS = 10_000;
/** How long a request waits for a free connection or for a connect, in ms. */
const CONNECT_MS = 3_000;

/**
 * The begin of every transaction, one round trip. A process that is paused in the middle of a transaction (SIGSTOP, a
 * frozen VM) would hold a session's row lock for ever: Postgres ends such a transaction after two seconds. `set local`
 * and nothing of the session level, so a pooler in transaction mode works.
 */
const BEGIN = "begin; set local idle_in_transaction_session_timeout = '2s'; set local lock_timeout = '5s'";

// 20: bigint. Counts and event numbers stay far below 2^53, so they are plain numbers here.
pg.types.setTypeParser(20, (text) => Number(text));

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The one door to Postgres: a pool of connections, statements, and transactions. */
export class Database implements Query {
  readonly #pool: pg.Pool;
  readonly #names = new PreparedNames();

  /**
   * @param url a Postgres connection string; `?sslmode=` works
   * @param max connections at most
   * @param onError told of connections that broke while idle; the pool replaces them by itself
   */
  constructor(url: string, max: number, onError: (error: Error) => void = () => {}) {
    this.#pool = new pg.Pool({
      connectionString: url,
      max,
      connectionTimeoutMillis: CONNECT_MS,
      query_timeout: STATEMENT_MS,
      idleTimeoutMillis: 30_000,
      keepAlive: true,
      application_name: 'turnkeep',
    });
    this.#pool.on('error', onError);
    this.#pool.on('connect', (client) => client.on('error', () => {}));
  }

  async query<Row>(sql: string, values: readonly unknown[] = []): Promise<Row[]> {
    return this.#retried(() => this.#queryOnce(sql, values));
  }

  async #queryOnce<Row>(sql: string, values: readonly unknown[]): Promise<Row[]> {
    const client = await this.#connect();
    let broken = false;
    try {
      return await this.#send<Row>(client, sql, values);
    } catch (error) {
      broken = isAway(error);
      throw broken ? new DatabaseAway(error) : error;
    } finally {
      client.release(broken);
    }
  }

  async #send<Row>(client: pg.PoolClient, sql: string, values: readonly unknown[]): Promise<Row[]> {
    const name = values.length > 0 ? this.#names.of(sql) : undefined;
    const statement = { text: sql, values: values as unknown[], ...(name === undefined ? {} : { name }) };
    return (await client.query(statement)).rows as Row[];
  }

  /**
   * Runs `work` in one transaction (read committed) and commits. Whatever `work` throws rolls back.
   */
  async transaction<T>(work: (tx: Query) => Promise<T>): Promise<T> {
    return this.#retried(() => this.#once(work, BEGIN));
  }

  /**
   * A transaction that begins by locking a session's row: the session lock, under which every change of a session
   * happens. Begin and lock are one round trip. `no key`: what a worker writes meanwhile references the session, and must
   * not wait for it while it holds the execution that the lock's holder wants. `session` is null where there is no such session or it was deleted.
   * What `work` reads sees everything that earlier holders of the lock committed.
   */
  async session<T>(sessionId: string, work: (tx: Query, session: SessionRow | null) => Promise<T>): Promise<T> {
    if (!UUID.test(sessionId)) throw new TypeError('sessionId is not a UUID');
    const lock = `${BEGIN}; select id, project_id, agent_id, user_id, status, execution_count, next_position
      from sessions where id = '${sessionId}' and deleted_at is null for no key update`;
    return this.#retried(() => this.#once((client) => work(client, client.locked), lock));
  }

  /** One consistent view over several reads; writes nothing. */
  async snapshot<T>(work: (tx: Query) => Promise<T>): Promise<T> {
    return this.#retried(() =>
      this.#once(work, BEGIN.replace('begin', 'begin isolation level repeatable read read only')),
    );
  }

  /** What Postgres has rolled back whole (a deadlock, a serialisation failure, a prepared statement) is run again, twice at most. */
  async #retried<T>(run: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await run();
      } catch (error) {
        const isWhole = isRolledBackByPostgres(error) || this.#names.isRefused(error);
        if (attempt >= 3 || !isWhole) throw error;
      }
    }
  }

  async #once<T>(work: (tx: Transaction) => Promise<T>, begin: string): Promise<T> {
    const client = await this.#connect();
    let broken = false;
    try {
      const results = (await client.query(begin)) as unknown as { rows: unknown[] }[];
      const locked = (results.at(-1)?.rows[0] ?? null) as SessionRow | null;
      const query = <Row>(sql: string, values: readonly unknown[] = []) => this.#send<Row>(client, sql, values);
      const result = await work({ query, locked });
      await client.query('commit');
      return result;
    } catch (error) {
      broken = isAway(error) || (await rollbackFails(client));
      throw isAway(error) ? new DatabaseAway(error) : error;
    } finally {
      client.release(broken);
    }
  }

  async #connect(): Promise<pg.PoolClient> {
    try {
      return await this.#pool.connect();
    } catch (error) {
      throw new DatabaseAway(error);
    }
  }

  /** Closes all connections; resolves when none is left. Safe to call twice. */
  async stop(): Promise<void> {
    if (!this.#pool.ended) await this.#pool.end();
  }
}

async function rollbackFails(client: pg.PoolClient): Promise<boolean> {
  return client.query('rollback').then(
    () => false,
    () => true,
  );
}

/**
 * SQLSTATEs by which Postgres says that this connection, or the server, is going (25P03: idle in transaction), or that a lock
 * was waited for in vain (55P03): try again later.
 */
const AWAY = /^(08...|57P0[1-5]|53300|25P0[34]|55P03)$/;

function isAway(error: unknown): boolean {
  if (error instanceof DatabaseAway) return true;
  if (error instanceof pg.DatabaseError) return AWAY.test(error.code ?? '');
  if (!(error instanceof Error)) return false;
  const code = (error as NodeJS.ErrnoException).code ?? '';
  if (/^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ENOENT)/.test(code)) return true;
  return /connection terminated|query read timeout|timeout exceeded|not queryable|connection error/i.test(
    error.message,
  );
}

function isRolledBackByPostgres(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === '40P01' || error.code === '40001');
}

/** True where Postgres refused a row for a unique constraint or index; with `name`, for that one. */
export function isUniqueViolation(error: unknown, name?: string): boolean {
  return (
    error instanceof pg.DatabaseError && error.code === '23505' && (name === undefined || error.constraint === name)
  );
}
