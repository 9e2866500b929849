import { createHash } from 'node:crypto';
import pg from 'pg';

/** Statements that are prepared at most: those of the code are far fewer, so a text that is made up anew each time shows. */
const MAX_STATEMENTS = 500;
const NAME_CHARS = 16;

/**
 * Names for prepared statements. Planning is more than half of what most of our statements cost; a connection plans a named
 * one once. The name is made of the text: behind a pooler, where a statement may meet a connection on which another process
 * has prepared it, the same name is always the same statement.
 */
export class PreparedNames {
  readonly #names = new Map<string, string>();
  #generation = 0;
  #enabled = true;

  /** The name of a statement; undefined where it is not to be prepared. */
  of(sql: string): string | undefined {
    if (!this.#enabled) return undefined;
    const known = this.#names.get(sql);
    if (known !== undefined || this.#names.size >= MAX_STATEMENTS) return known;
    const name = createHash('sha256').update(`${this.#generation} ${sql}`).digest('base64url').slice(0, NAME_CHARS);
    this.#names.set(sql, name);
    return name;
  }

  /**
   * Learns from an error. True where Postgres refused a prepared statement as such, before running it: what failed can be run
   * again, and will go through. That is so after a migration that changed a result (all get new names), and behind a pooler
   * in transaction mode that does not follow prepared statements, such as PgBouncer before 1.21 (none is prepared any more).
   */
  isRefused(error: unknown): boolean {
    if (!(error instanceof pg.DatabaseError)) return false;
    if (error.code === '0A000' && error.message.includes('cached plan')) {
      this.#generation += 1;
      this.#names.clear();
      return true;
    }
    // No statement of that name, or another one has it.
    if (error.code !== '26000' && error.code !== '42P05') return false;
    this.#enabled = false;
    return true;
  }
}
