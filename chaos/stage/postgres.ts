import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { noteFolder, noteProcess } from './notes.js';

/** What this folder uses of the set-up scripts, which are plain JavaScript. */
interface Setup {
  postgresPlace(options: { kept: boolean }): Promise<Place>;
  startPostgres(options: object): Promise<{ url: (database: string) => string; stop: () => Promise<void> }>;
  freePort(): Promise<number>;
}

interface Place {
  readonly binaries: string;
  readonly folder: string;
  readonly owner?: { uid: number; gid: number };
  readonly elsewhere: boolean;
}

/**
 * A Postgres of the run's own, to be broken. It does not wait for the disk, since only its processes are killed, never
 * the machine; a commit is with the kernel when it is answered.
 */
export class Postgres {
  readonly #folder: string;
  readonly #password = randomBytes(18).toString('base64url');
  #setup: Setup | undefined;
  #place: Place | undefined;
  #port = 0;
  #pid = 0;
  #service: { url: (database: string) => string; stop: () => Promise<void> } | undefined;
  #state: 'up' | 'paused' | 'down' = 'down';

  /** @param folder for its data and its log */
  constructor(folder: string) {
    this.#folder = folder;
  }

  url(database: string): string {
    return `postgres://postgres:${this.#password}@127.0.0.1:${this.#port}/${database}`;
  }

  async start(): Promise<void> {
    this.#setup ??= await loadSetup();
    this.#place ??= await this.#findPlace(this.#setup);
    this.#port ||= await this.#setup.freePort();
    this.#service = await this.#setup.startPostgres({
      place: this.#place,
      dataFolder: this.#dataFolder,
      port: this.#port,
      password: this.#password,
      durable: true,
      settings: ['fsync=off', 'full_page_writes=off', 'max_connections=300'],
      logFile: join(this.#folder, 'postgres.log'),
      record: {
        addProcess: (child: { pid: number; marker: string }) => {
          this.#pid = child.pid;
          noteProcess(child);
        },
      },
    });
    this.#state = 'up';
  }

  /** Freezes all of its processes. */
  pause(): void {
    if (this.#state !== 'up') return;
    this.#signal('SIGSTOP');
    this.#state = 'paused';
  }

  resume(): void {
    if (this.#state !== 'paused') return;
    this.#signal('SIGCONT');
    this.#state = 'up';
  }

  /** Kills all of its processes at once. */
  async kill(): Promise<void> {
    if (this.#state === 'down') return;
    process.kill(this.#pid, 'SIGSTOP'); // So that it starts nothing more while its children are counted.
    const pids = [this.#pid, ...childrenOf(this.#pid)];
    for (const pid of pids) send(pid, 'SIGKILL');
    this.#state = 'down';
    await this.#service?.stop();
    // Where nobody collects orphans they stay as zombies, which hold nothing any more.
    for (let waits = 0; waits < 100 && pids.some((pid) => send(pid, 0)); waits += 1) await delay(10);
    // All of it is dead: its lock must not keep the next one from starting, should its id have been given to another.
    rmSync(join(this.#dataFolder, 'postmaster.pid'), { force: true });
  }

  /** Starts it again where it is down, and lets it go on where it is paused. */
  async heal(): Promise<void> {
    this.resume();
    if (this.#state === 'down') await this.start();
  }

  /** Ends it as its operator does: connections are ended, and all is written. */
  async stop(): Promise<void> {
    this.resume();
    if (this.#state === 'down') return;
    this.#state = 'down';
    await this.#service?.stop();
  }

  get #dataFolder(): string {
    return join(this.#place?.elsewhere ? this.#place.folder : this.#folder, 'postgres');
  }

  async #findPlace(setup: Setup): Promise<Place> {
    const place = await setup.postgresPlace({ kept: false });
    if (place.elsewhere) noteFolder(place.folder);
    return place;
  }

  #signal(signal: NodeJS.Signals): void {
    send(this.#pid, signal);
    for (const pid of childrenOf(this.#pid)) send(pid, signal);
  }
}

async function loadSetup(): Promise<Setup> {
  const load = (name: string) => import(new URL(`../../scripts/setup/${name}.mjs`, import.meta.url).href);
  const [place, postgres, ports] = await Promise.all([load('postgres-place'), load('postgres'), load('ports')]);
  return { ...place, ...postgres, ...ports } as Setup;
}

function childrenOf(pid: number): number[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).split('\n');
  const pairs = lines.map((line) => line.trim().split(/\s+/).map(Number));
  return pairs.flatMap(([child, parent]) => (parent === pid && child !== undefined ? [child] : []));
}

/** True where there was such a process. */
function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}
