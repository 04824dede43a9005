/** The HTTP server that stands for an inference engine. The model behind it is given; it never looks inside. */
import { timingSafeEqual } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { fastify, type FastifyInstance, type FastifyReply } from 'fastify';
import { messageOf, RolloutError } from '../../core/errors.ts';
import { systemClock, type Clock } from '../../core/clock.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { Dialect, EngineParts } from './engine-parts.ts';
import { faultChooser, type FaultRule } from './fault-script.ts';
import { noLatency, type LatencyLaw } from './latency.ts';
import { Refusal, type ErrorShape } from './refusal.ts';
import { OpenCount } from './open-count.ts';
import { openRequestLog, type RequestLog } from './request-log.ts';
import { addChatRoute } from './routes/chat.ts';
import { addCompletionsRoute } from './routes/completions.ts';
import { addControlRoutes } from './routes/control.ts';
import { addGenerateRoute } from './routes/generate.ts';
import { addModelRoutes } from './routes/models.ts';
import { addRouterRoutes } from './routes/router.ts';
import { addStatusRoutes } from './routes/status.ts';
import { addTokenizeRoutes } from './routes/tokenize.ts';
import { Scheduler } from './scheduler.ts';
import type { TokenModel } from './token-model.ts';

export interface EngineServerOptions {
  /** Closed with the server; a start that fails leaves it open. */
  readonly model: TokenModel;
  readonly host?: string;
  /** 0 = any free one. */
  readonly port?: number;
  /** null = no key is asked for. */
  readonly apiKey?: string | null;
  readonly dialect?: Dialect;
  readonly seed?: number;
  readonly latency?: LatencyLaw;
  readonly tokenLatency?: LatencyLaw;
  readonly faults?: readonly FaultRule[];
  /** NDJSON, one line per request; null = none. */
  readonly logFile?: string | null;
  readonly kvTokens?: number;
  /** Never more than the model's own. */
  readonly contextTokens?: number | null;
  readonly maxRunning?: number;
  /** null = the server lists itself. */
  readonly routerWorkers?: readonly string[] | null;
  readonly clock?: Clock;
  /** How long `close` waits for running requests before it aborts them. */
  readonly drainMs?: number;
}

export interface EngineServer extends AsyncDisposable {
  readonly url: string;
  readonly modelName: string;
  /** Takes no more requests, waits for those that run, then stops. Idempotent. */
  close(): Promise<void>;
}

/** How long a request may take to write its line once its connection is closed. */
const lineMs = 1_000;

/**
 * Many times what fits into any context, as text or as ids. A text is encoded in one go: one of hundreds of megabytes would stop all other requests
 * for minutes, and takes more memory than a process has.
 */
const maxBodyBytes = 16 * 2 ** 20;

const defaults = {
  host: '127.0.0.1',
  port: 0,
  apiKey: null,
  dialect: 'both',
  seed: 0,
  latency: noLatency,
  tokenLatency: noLatency,
  faults: [],
  logFile: null,
  kvTokens: 4_194_304,
  contextTokens: null,
  maxRunning: 4096,
  routerWorkers: null,
  clock: systemClock,
  drainMs: 30_000,
} as const satisfies Partial<EngineServerOptions>;

/** CONFIG_INVALID for an address that cannot be used or is open to others without a key. */
export async function startEngineServer(given: EngineServerOptions): Promise<EngineServer> {
  const options: Required<EngineServerOptions> = { ...defaults, ...given };
  if (options.apiKey === null && !isLoopback(options.host))
    throw new RolloutError('CONFIG_INVALID', `${options.host} is open to other machines`, {
      phase: 'config',
      field: '--host',
      remedy: 'Set a key and name its variable with --api-key-env, or listen on 127.0.0.1.',
    });
  const log = options.logFile === null ? null : openRequestLog(options.logFile);
  const app = fastify({
    bodyLimit: maxBodyBytes,
    // An answer may be silent for hours.
    requestTimeout: 0,
    connectionTimeout: 0,
    keepAliveTimeout: 600_000,
    forceCloseConnections: true,
  });
  const scheduler = new Scheduler({ ...options });
  const contextTokens = Math.min(
    options.model.contextTokens,
    options.contextTokens ?? Infinity,
    options.kvTokens,
  );
  let url = '';
  const open = { answers: new OpenCount(), lines: new OpenCount() };
  const parts: EngineParts = {
    model: options.model,
    scheduler,
    chooseFault: faultChooser(options.faults, options.seed),
    log,
    open,
    clock: options.clock,
    dialect: options.dialect,
    contextTokens,
    maxRunning: options.maxRunning,
    url: () => url,
  };
  addErrorAnswers(app, options.dialect);
  if (options.apiKey !== null) requireKey(app, options.apiKey);
  addRoutes(app, parts, options.routerWorkers);
  const server = new RunningServer({ app, scheduler, log, open, options });
  app.addHook('onRequest', (_, __, next) => next(server.refusal ?? undefined));
  try {
    await app.listen({ host: options.host, port: options.port });
  } catch (error) {
    await app.close();
    log?.[Symbol.dispose]();
    throw new RolloutError('CONFIG_INVALID', messageOf(error), {
      phase: 'config',
      field: '--port',
      remedy: 'Choose a free port, or 0 for any, and an address of this machine.',
      cause: error,
    });
  }
  const { port } = app.server.address() as AddressInfo;
  const host = options.host.includes(':') ? `[${options.host}]` : options.host;
  url = `http://${host}:${port}`;
  server.url = url;
  return server;
}

class RunningServer implements EngineServer {
  url = '';
  readonly modelName: string;
  readonly #app: FastifyInstance;
  readonly #scheduler: Scheduler;
  readonly #log: RequestLog | null;
  readonly #open: EngineParts['open'];
  readonly #options: Required<EngineServerOptions>;
  #closing: Promise<void> | null = null;

  constructor(parts: {
    readonly app: FastifyInstance;
    readonly scheduler: Scheduler;
    readonly log: RequestLog | null;
    readonly open: EngineParts['open'];
    readonly options: Required<EngineServerOptions>;
  }) {
    this.#app = parts.app;
    this.#scheduler = parts.scheduler;
    this.#log = parts.log;
    this.#open = parts.open;
    this.#options = parts.options;
    this.modelName = parts.options.model.name;
  }

  /** What every request is answered while it closes. */
  get refusal(): Refusal | null {
    if (this.#closing === null) return null;
    return new Refusal(503, 'the engine is shutting down', { retryAfterSeconds: 1 });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    const { drainMs, model } = this.#options;
    {
      using limit = new LinkedAbort([], { ms: drainMs, reason: () => new Error('drained') });
      // A paused engine would never drain.
      if (!this.#scheduler.isPaused) await this.#open.answers.none(limit.signal);
    }
    this.#scheduler.abortAll('the engine is shutting down');
    // Answers that have just ended still have their last bytes to send.
    await new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));
    await this.#app.close();
    {
      // Requests whose connections were closed write theirs now.
      using limit = new LinkedAbort([], { ms: lineMs, reason: () => new Error('too late') });
      await this.#open.lines.none(limit.signal);
    }
    this.#log?.[Symbol.dispose]();
    await model.close();
  }
}

function addRoutes(
  app: FastifyInstance,
  parts: EngineParts,
  workers: readonly string[] | null,
): void {
  addStatusRoutes(app, parts);
  addModelRoutes(app, parts);
  addChatRoute(app, parts);
  addCompletionsRoute(app, parts);
  if (parts.dialect === 'openai') return;
  addTokenizeRoutes(app, parts);
  if (parts.dialect === 'vllm') return;
  addGenerateRoute(app, parts);
  addControlRoutes(app, parts);
  addRouterRoutes(app, parts, workers);
}

function addErrorAnswers(app: FastifyInstance, dialect: Dialect): void {
  const shapeOf = (path: string): ErrorShape => {
    if (!path.startsWith('/v1/') && path !== '/generate') return 'openai';
    if (path === '/generate') return 'sglang-native';
    return dialect === 'sglang' ? 'sglang-chat' : 'openai';
  };
  const answer = async (reply: FastifyReply, path: string, refusal: Refusal): Promise<void> => {
    if (refusal.retryAfterSeconds !== null)
      reply.header('retry-after', String(Math.ceil(refusal.retryAfterSeconds)));
    await reply.status(refusal.status).send(refusal.body(shapeOf(path)));
  };
  app.setNotFoundHandler(async ({ method, url }, reply) => {
    const [path = url] = url.split('?', 1);
    await answer(reply, path, new Refusal(404, `Not Found: ${method} ${path}`));
  });
  app.setErrorHandler(async (error, { url }, reply) => {
    const [path = url] = url.split('?', 1);
    await answer(reply, path, refusalOf(error));
  });
}

/** What the framework refuses has its own status: a body that is no JSON, one that is too large. */
function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  const { statusCode } = error as { readonly statusCode?: unknown };
  return new Refusal(typeof statusCode === 'number' ? statusCode : 500, messageOf(error));
}

function requireKey(app: FastifyInstance, key: string): void {
  const expected = Buffer.from(`Bearer ${key}`);
  const open = new Set(['/health', '/health_generate', '/ping', '/metrics']);
  app.addHook('onRequest', ({ headers, url }, _, next) => {
    const given = Buffer.from(headers.authorization ?? '');
    const isKnown = given.length === expected.length && timingSafeEqual(given, expected);
    if (isKnown || open.has(url.split('?', 1)[0] ?? url)) next();
    else next(new Refusal(401, 'Unauthorized'));
  });
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}
