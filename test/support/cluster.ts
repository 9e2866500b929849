import { randomBytes } from 'node:crypto';
import { Chat } from './chat.js';
import { unique } from './environment.js';
import { HttpClient } from './http.js';
import { ModelServer } from './model-server.js';
import { PointedWorker } from './points.js';
import { createDatabase, type TestDatabase } from './postgres.js';
import { type Kind, ProductProcess } from './processes.js';
import { createRedis, type TestRedis } from './redis.js';
import { ToolServer } from './tool-server.js';

/** What a test file asks of its cluster. */
export interface ClusterOptions {
  readonly mains?: number;
  readonly workers?: number;
  /** Environment of every process, beside what the cluster sets itself. */
  readonly env?: Record<string, string>;
  /** A Redis of the test's own instead of a database number of the shared one. */
  readonly redisUrl?: string;
}

/** Roles of section 2 of the contract. */
export type Role = 'viewer' | 'user' | 'editor' | 'admin';

/** Somebody with a token. */
export interface TestUser {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly token: string;
  /** This user's requests to main number `main`. */
  on(main?: number): HttpClient;
}

/** An agent's configuration as section 3 of the contract has it. */
export interface AgentConfig {
  readonly instructions: string;
  readonly model: Record<string, unknown>;
  readonly tools: readonly Record<string, unknown>[];
  readonly limits: Record<string, number>;
}

/** Real mains and workers on a database and a Redis of their own, with a scripted model and scripted tools beside. */
export class Cluster {
  readonly model = new ModelServer();
  readonly tools = new ToolServer();
  readonly mains: ProductProcess[] = [];
  readonly workers: ProductProcess[] = [];
  readonly adminToken = `admin-${randomBytes(24).toString('base64url')}`;
  readonly #options: ClusterOptions;
  /** What every process gets as ENCRYPTION_KEY, in base64. */
  readonly encryptionKey = randomBytes(32);
  #database: TestDatabase | undefined;
  #redis: TestRedis | undefined;
  readonly #deferred: (() => Promise<unknown>)[] = [];

  constructor(options: ClusterOptions = {}) {
    this.#options = options;
  }

  async start(): Promise<this> {
    this.#database = await createDatabase();
    if (this.#options.redisUrl === undefined) this.#redis = await createRedis();
    await Promise.all([this.model.start(), this.tools.start()]);
    const mains = Array.from({ length: this.#options.mains ?? 2 }, () => this.startMain());
    const workers = Array.from({ length: this.#options.workers ?? 2 }, () => this.startWorker());
    await Promise.all([...mains, ...workers]);
    return this;
  }

  /** Has `stop` do this once the processes have ended, and before their database goes. */
  defer(cleanUp: () => Promise<unknown>): void {
    this.#deferred.push(cleanUp);
  }

  /** Stops every process that still runs, each with exit code 0, then what they stood on. */
  async stop(): Promise<void> {
    const left = [...this.mains, ...this.workers].filter((one) => one.alive);
    const outcomes = await Promise.allSettled(left.map((one) => one.stop()));
    await Promise.all([this.model.stop(), this.tools.stop()]);
    await Promise.all(left.map((one) => (one.alive ? one.kill() : undefined)));
    for (const cleanUp of this.#deferred) await cleanUp();
    await this.#redis?.close();
    await this.#database?.drop();
    const failed = outcomes.find((outcome) => outcome.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  get db(): TestDatabase {
    if (this.#database === undefined) throw new Error('the cluster has not been started');
    return this.#database;
  }

  /** The cluster's database number on the shared Redis. */
  get redis(): TestRedis {
    if (this.#redis === undefined) throw new Error('this cluster has no Redis database of its own');
    return this.#redis;
  }

  /** Starts one more main and waits until it listens; it becomes the last of `mains`. */
  startMain(env: Record<string, string> = {}): Promise<ProductProcess> {
    return this.#spawn('main', this.mains, env);
  }

  /** Starts one more worker and waits until it listens; it becomes the last of `workers`. */
  startWorker(env: Record<string, string> = {}): Promise<ProductProcess> {
    return this.#spawn('worker', this.workers, env);
  }

  /** Like `startWorker`, but the test can hold or kill it at named points. */
  async startPointedWorker(env: Record<string, string> = {}): Promise<PointedWorker> {
    const worker = new PointedWorker(`worker ${this.workers.length}`, this.environment(env));
    this.workers.push(worker);
    await worker.listening();
    return worker;
  }

  /** Requests without any credential to main number `main`. */
  anonymous(main = 0): HttpClient {
    const process = this.mains[main];
    if (process === undefined) throw new Error(`there is no main ${main}`);
    return new HttpClient(process.baseUrl);
  }

  /** Requests of the instance admin. */
  admin(main = 0): HttpClient {
    return this.bearer(this.adminToken, main);
  }

  /** Requests with this token. */
  bearer(token: string, main = 0): HttpClient {
    return this.anonymous(main).withHeaders({ authorization: `Bearer ${token}` });
  }

  /** A new user with a token. */
  async newUser(name = unique('user')): Promise<TestUser> {
    const email = `${name}@example.org`;
    const created = await this.admin().expect(201, '/admin/users', { method: 'POST', body: { email, name } });
    const { id } = created.json<{ id: string }>();
    const path = `/admin/users/${id}/tokens`;
    const issued = await this.admin().expect(201, path, { method: 'POST', body: { name: 'test' } });
    const { token } = issued.json<{ token: string }>();
    return { id, name, email, token, on: (main = 0) => this.bearer(token, main) };
  }

  /** A new project of this user, who is its admin; answers with its id. */
  async newProject(owner: TestUser): Promise<string> {
    const created = await owner.on().expect(201, '/projects', { method: 'POST', body: { name: unique('project') } });
    return created.json<{ id: string }>().id;
  }

  /** Makes `user` a member; `by` must be an admin of the project. */
  async addMember(by: TestUser, projectId: string, user: TestUser, role: Role): Promise<void> {
    const path = `/projects/${projectId}/members/${user.id}`;
    const response = await by.on().put(path, { role });
    if (response.status >= 300) throw new Error(`PUT ${path} answered ${response.status}: ${response.text}`);
  }

  /** A configuration that talks to the scripted model, with these fields instead. */
  config(fields: Partial<AgentConfig> = {}): AgentConfig {
    return {
      instructions: 'You are a test agent.',
      model: { provider: 'openai-compatible', model: 'scripted', baseUrl: this.model.baseUrl },
      tools: [],
      limits: { maxSteps: 20, maxDurationMs: 600_000, maxToolOutputChars: 100_000 },
      ...fields,
    };
  }

  /** A new agent; answers with its id. */
  async newAgent(owner: TestUser, projectId: string, fields: Partial<AgentConfig> = {}): Promise<string> {
    const body = { name: unique('agent'), config: this.config(fields) };
    const created = await owner.on().expect(201, `/projects/${projectId}/agents/v2`, { method: 'POST', body });
    return created.json<{ id: string }>().id;
  }

  /** A new user with a project and an agent of these fields, ready to chat. */
  async newChat(fields: Partial<AgentConfig> = {}): Promise<Chat> {
    const user = await this.newUser();
    const projectId = await this.newProject(user);
    return new Chat(user, projectId, await this.newAgent(user, projectId, fields));
  }

  /** An HTTP tool of the scripted tool server, as an agent's configuration names it. */
  httpTool(name: string, fields: Record<string, unknown> = {}): Record<string, unknown> {
    return {
      type: 'http',
      name,
      description: `The test's tool ${name}`,
      inputSchema: { type: 'object' },
      method: 'POST',
      url: this.tools.url(name),
      requireApproval: false,
      timeoutMs: 30_000,
      ...fields,
    };
  }

  /** The environment that a process of this cluster gets; section 1 of the contract. */
  environment(env: Record<string, string> = {}): Record<string, string> {
    return {
      PATH: process.env.PATH ?? '',
      NODE_ENV: 'test',
      DATABASE_URL: this.db.url,
      REDIS_URL: this.#options.redisUrl ?? this.redis.url,
      PORT: '0',
      WORKER_PORT: '0',
      ENCRYPTION_KEY: this.encryptionKey.toString('base64'),
      ADMIN_TOKEN: this.adminToken,
      ALLOW_PRIVATE_NETWORK: 'true',
      SHUTDOWN_GRACE_MS: '1000',
      LOG_LEVEL: 'info',
      ...this.#options.env,
      ...env,
    };
  }

  async #spawn(kind: Kind, list: ProductProcess[], env: Record<string, string>): Promise<ProductProcess> {
    const process = new ProductProcess(kind, `${kind} ${list.length}`, this.environment(env));
    list.push(process);
    await process.listening();
    return process;
  }
}

/** A started cluster for a test that breaks it; the test stops it. */
export function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  return new Cluster(options).start();
}
