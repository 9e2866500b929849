import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { deferred, within } from './deadline.js';
import { REPOSITORY } from './environment.js';

/** The two kinds of process of the product (contract, section 1). */
export type Kind = 'main' | 'worker';

const ENTRY = { main: 'packages/api/dist/main.js', worker: 'packages/worker/dist/main.js' } as const;

/** One line of a process's log. */
export interface LogLine {
  readonly level?: number;
  readonly msg?: string;
  readonly [field: string]: unknown;
}

/** How a process ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const running = new Set<ProductProcess>();

/** A real main or worker, started from the build. */
export class ProductProcess {
  /** Everything it wrote, line by line, from both of its outputs. */
  readonly output: string[] = [];
  readonly log: LogLine[] = [];
  /** Resolves when it has ended. */
  readonly exit: Promise<Exit>;
  readonly #child: ChildProcess;
  readonly #listening = deferred<number>();
  #ended: Exit | undefined;
  #wake = deferred();
  #port = 0;

  constructor(
    readonly kind: Kind,
    readonly name: string,
    env: Record<string, string>,
    args: readonly string[] = ['--enable-source-maps', ENTRY[kind]],
    stdio: StdioOptions = ['ignore', 'pipe', 'pipe'],
  ) {
    this.#child = spawn(process.execPath, args, { cwd: REPOSITORY, env, stdio });
    running.add(this);
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (stream) createInterface({ input: stream }).on('line', (line) => this.#line(line));
    }
    this.exit = new Promise((resolve) => {
      this.#child.once('close', (code, signal) => {
        running.delete(this);
        this.#ended = { code, signal };
        this.#signal();
        resolve(this.#ended);
      });
    });
  }

  /** Waits for the start line and answers with the port that it names. */
  async listening(): Promise<number> {
    const failed = this.exit.then((exit) => {
      throw new Error(`${this.name} ended while starting (${JSON.stringify(exit)}):\n${this.tail()}`);
    });
    failed.catch(() => {});
    const started = Promise.race([this.#listening.promise, failed]);
    this.#port = await within(started, () => `${this.name} did not start:\n${this.tail()}`, 30_000);
    return this.#port;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get alive(): boolean {
    return this.#ended === undefined;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** The process itself, for what a subclass has to say to it. */
  protected get child(): ChildProcess {
    return this.#child;
  }

  /** Sends a signal and waits for nothing. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Ends it at once, as a crash does. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<Exit> {
    this.#child.kill(signal);
    return within(this.exit, () => `${this.name} survived ${signal}:\n${this.tail()}`);
  }

  /** Freezes it where it stands. */
  pause(): void {
    this.#child.kill('SIGSTOP');
  }

  resume(): void {
    this.#child.kill('SIGCONT');
  }

  /** Asks it to stop and expects exit code 0 within `ms`. */
  async stop(ms = 20_000): Promise<void> {
    if (this.alive) this.#child.kill('SIGTERM');
    const exit = await within(this.exit, () => `${this.name} did not stop on SIGTERM:\n${this.tail()}`, ms);
    if (exit.code !== 0) throw new Error(`${this.name} ended with ${JSON.stringify(exit)}:\n${this.tail()}`);
  }

  /** Waits for a line of the log that matches. */
  async logged(match: (line: LogLine) => boolean, what: string): Promise<LogLine> {
    const search = async () => {
      for (;;) {
        const line = this.log.find(match);
        if (line !== undefined) return line;
        if (!this.alive) throw new Error(`${this.name} ended without logging ${what}:\n${this.tail()}`);
        await this.#wake.promise;
      }
    };
    return within(search(), () => `${this.name} did not log ${what}:\n${this.tail()}`);
  }

  /** The end of its log, for a failure's message. */
  tail(lines = 40): string {
    return this.output.slice(-lines).join('\n');
  }

  #line(line: string): void {
    this.output.push(line);
    const parsed = parseLine(line);
    if (parsed !== undefined) {
      this.log.push(parsed);
      if (parsed.msg === 'listening' && typeof parsed.port === 'number') this.#listening.resolve(parsed.port);
    }
    this.#signal();
  }

  #signal(): void {
    const wake = this.#wake;
    this.#wake = deferred();
    wake.resolve();
  }
}

/** Kills every process that is still there and answers with their names: a test that leaves one has a mistake. */
export async function killLeftovers(): Promise<string[]> {
  const left = [...running];
  await Promise.all(
    left.map((one) => {
      one.resume();
      return one.kill('SIGKILL');
    }),
  );
  return left.map((one) => one.name);
}

function parseLine(line: string): LogLine | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as LogLine) : undefined;
  } catch {
    return undefined;
  }
}
