import { readdirSync, rmSync } from 'node:fs';
import { build } from '../setup/build.mjs';
import { installDependencies } from '../setup/dependencies.mjs';
import { inRoot, inState, root } from '../setup/paths.mjs';
import { freePort, isFree } from '../setup/ports.mjs';
import { clearLeftovers, openRecord, runningCommand } from '../setup/records.mjs';
import { lastLine, run } from '../setup/run.mjs';
import { SetupError, say, step } from '../setup/say.mjs';
import { prepareDemo } from './demo.mjs';
import { demoModel } from './demo-model.mjs';
import { startDemoTools } from './demo-tools.mjs';
import { readSecrets } from './secrets.mjs';
import { openPostgres, openRedis } from './stores.mjs';
import { supervise } from './supervise.mjs';

/**
 * One `npm start`: Postgres, Redis, mains, workers, and the server of the demo's tools.
 * `start()` sets all of it up; `stop()` ends what was started, newest first, also in the middle of a start.
 */
export class Installation {
  stopping = false;
  /** What runs, in the order of its start: `{name, stop}`. */
  #parts = [];
  #children = [];
  #record;
  #started;

  /** @param {{mains: number, workers: number, port: number}} options see `readOptions` */
  constructor(options) {
    this.options = options;
  }

  /** Resolves when everything runs and the link is printed. */
  start() {
    this.#started ??= this.#setUp();
    return this.#started;
  }

  /** Safe at any time and twice. Mains and workers finish their turns first; then Redis, then Postgres. */
  async stop() {
    this.stopping = true;
    await this.#started?.catch(() => {});
    const processes = this.#parts.filter(({ isStore }) => !isStore);
    const stores = this.#parts.filter(({ isStore }) => isStore);
    this.#parts = [];
    await Promise.all(processes.map(({ stop }) => stop()));
    for (const { stop } of stores.reverse()) await stop();
    this.#record?.close();
  }

  /** Ends every process by force, now; the next start finds the data as after a power cut, which it survives. */
  kill() {
    for (const { pid, signal } of this.#children)
      try {
        // SIGINT is Postgres' ordinary end; it has one of its own for an immediate one that leaves no children.
        process.kill(pid, signal === 'SIGINT' ? 'SIGQUIT' : 'SIGKILL');
      } catch {
        // Ended before.
      }
    process.exit(1);
  }

  async #setUp() {
    await this.#step('dependencies', installDependencies);
    await this.#begin();
    const secrets = readSecrets();
    await this.#step('build', () => build());
    const postgres = await this.#store('Postgres', openPostgres, secrets);
    const redis = await this.#store('Redis', openRedis, secrets);
    const env = environment({ postgres, redis, secrets });
    await this.#step('schema', () => migrate(env));
    const ports = await this.#startProcesses(env);
    const demo = await this.#step('demo agent', (note) => this.#demo(ports[0], secrets, note));
    await this.#announce(demo, ports);
  }

  /** One start a clone; what an earlier one left behind is ended first. */
  async #begin() {
    const other = runningCommand('start');
    if (other)
      throw new SetupError(`Turnkeep already runs from this folder: stop it first (Ctrl-C there, or: kill ${other}).`);
    await clearLeftovers('start');
    clearLogs();
    const record = openRecord('start');
    this.#record = record;
    this.record = {
      addProcess: (child) => {
        this.#children.push(child);
        record.addProcess(child);
      },
    };
  }

  #step(name, work) {
    if (this.stopping) throw new SetupError('Stopped.');
    return step(name, work);
  }

  #store(name, open, secrets) {
    return this.#step(name, async (note) => {
      const store = await open({ secrets, record: this.record, note });
      if (store.stop) this.#parts.push({ stop: store.stop, isStore: true });
      store.exited?.then((reason) => this.#sayIfLost(name, reason));
      return store;
    });
  }

  #sayIfLost(name, reason) {
    if (!this.stopping)
      say(`${name} ended (${reason}). Stop with Ctrl-C and run npm start again; accepted messages are kept.`);
  }

  /** All at once; the step's line names the ports of the mains. Returns those. */
  async #startProcesses(env) {
    const { mains, workers } = this.options;
    return this.#step(`${count(mains, 'main')} and ${count(workers, 'worker')}`, async (note) => {
      const wanted = await this.#choosePorts(note);
      const starts = wanted.map((port, index) =>
        this.#process(nameOf('main', index, mains), 'api', { ...env, PORT: port }),
      );
      for (let index = 0; index < workers; index++)
        starts.push(this.#process(nameOf('worker', index, workers), 'worker', { ...env, WORKER_PORT: '0' }));
      // All of them, so that each that came up is known and can be stopped.
      const failed = (await Promise.allSettled(starts)).find(({ status }) => status === 'rejected');
      if (failed) throw failed.reason;
      return wanted;
    });
  }

  /** The ports that the mains take: from the wanted one on; in the place of a taken one, any that is free. */
  async #choosePorts(note) {
    const { mains, port } = this.options;
    const ports = [];
    const taken = [];
    for (let wanted = port; wanted < port + mains; wanted++) {
      const free = wanted <= 65_535 && (await isFree(wanted));
      if (!free) taken.push(wanted);
      ports.push(String(free ? wanted : await freePort()));
    }
    const remark = taken.length > 0 ? `, since ${taken.join(', ')} is taken` : '';
    note(`port ${ports.join(', ')}${remark}`);
    return ports;
  }

  async #process(name, folder, env) {
    const script = inRoot('packages', folder, 'dist', 'main.js');
    const logFile = inState('logs', `${name.replace(' ', '-')}.log`);
    const part = await supervise({ name, script, env, logFile, record: this.record });
    this.#parts.push(part);
    return part;
  }

  async #demo(port, secrets, note) {
    const tools = await startDemoTools();
    this.#parts.push(tools);
    const chosen = demoModel(process.env);
    note(`model ${chosen.model.provider === 'demo' ? 'demo (scripted; no key needed)' : chosen.model.model}`);
    return prepareDemo({
      baseUrl: addressOf(port),
      adminToken: secrets.ADMIN_TOKEN,
      demoModel: chosen,
      toolsUrl: tools.url,
    });
  }

  async #announce(demo, ports) {
    if (this.stopping) return;
    const { mains, workers } = this.options;
    say(`\nTurnkeep runs: ${count(mains, 'main')} on port ${ports.join(', ')}, and ${count(workers, 'worker')}.`);
    say('Logs are in .turnkeep/logs. Ctrl-C stops everything. This link signs you in once, within ten minutes:');
    const link = await demo.newLink();
    say(`\n  ${link}\n`);
    sayOtherAddresses(link, ports);
    offerNewLinks(demo);
  }
}

function count(number, noun) {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

function nameOf(noun, index, of) {
  return of === 1 ? noun : `${noun} ${index + 1}`;
}

/** Every main serves everything, so the link may be opened at any of them. */
function sayOtherAddresses(link, [first, ...others]) {
  const origin = addressOf(first);
  if (others.length === 0 || !link.startsWith(`${origin}/`)) return;
  say('Or open it at another main. It counts once; you are then signed in at all of them:\n');
  for (const port of others) say(`  ${addressOf(port)}${link.slice(origin.length)}`);
  say('');
}

function addressOf(port) {
  return `http://127.0.0.1:${port}`;
}

/** Removes the logs of earlier starts: with other numbers of processes they had other names (main.log, main-1.log). */
function clearLogs() {
  for (const name of readdirSync(inState('logs')))
    if (/^(main|worker)(-\d+)?\.log$|^(postgres|redis)\.log$/.test(name))
      rmSync(inState('logs', name), { force: true });
}

/** On a terminal, Enter prints another link: the first one is used up by one browser. */
function offerNewLinks(demo) {
  if (!process.stdin.isTTY) return;
  say('Press Enter for another one.');
  process.stdin.setEncoding('utf8').on('data', () => {
    demo.newLink().then(
      (url) => say(`  ${url}\n`),
      (error) => say(error.message),
    );
  });
}

function environment({ postgres, redis, secrets }) {
  return {
    ...process.env,
    NODE_ENV: 'production',
    DATABASE_URL: postgres.url,
    REDIS_URL: redis.url,
    HOST: '127.0.0.1',
    WORKER_HOST: '127.0.0.1',
    ENCRYPTION_KEY: secrets.ENCRYPTION_KEY,
    ADMIN_TOKEN: secrets.ADMIN_TOKEN,
    ALLOW_PRIVATE_NETWORK: 'true', // The demo tool, and a model such as Ollama's, are on loopback.
    ...withoutKeys,
  };
}

/** The demo model's keys go through the API, encrypted; no process needs them in its environment. */
const withoutKeys = { OPENAI_API_KEY: undefined, ANTHROPIC_API_KEY: undefined };

async function migrate(env) {
  const { code, output } = await run(process.execPath, [inRoot('packages', 'shared', 'dist', 'db', 'migrate.js')], {
    env,
    cwd: root,
  });
  if (code !== 0) throw new SetupError(`The schema could not be brought up to date: ${lastLine(output)}`);
}
