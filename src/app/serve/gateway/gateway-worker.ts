/**
 * Entry of a process that serves model calls: keys, calls and capture of its rollouts are here, and a data listener of its own. What has ended is told once per
 * turn of the loop. Routes that the process before it held are there before it listens.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { FastifyInstance } from 'fastify';
import { systemClock } from '../../../core/clock.ts';
import { faultOf } from '../../../core/error-fault.ts';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import { openEngine } from '../../../engines/registry.ts';
import type { CallCapture } from '../../../gateway/capture/call-capture.ts';
import { ModelGateway } from '../../../gateway/model-gateway.ts';
import { registerGateway } from '../../../gateway/register-gateway.ts';
import { registerSessions } from '../../../gateway/sessions/register-sessions.ts';
import { sessionIdentity, type SessionServer } from '../../../gateway/sessions/session-server.ts';
import { buildDataServer } from '../../../server/data-server.ts';
import { defaultServerLimits } from '../../../server/ports.ts';
import { vitalsOf } from '../../../telemetry/process-metrics.ts';
import { UrlPolicy } from '../../../wire/url-policy.ts';
import { collectEarly } from '../early-collection.ts';
import { livesWithServer, tellServer } from '../lives-with-server.ts';
import { closeServer, listen } from '../listen.ts';
import { toldLogger } from '../told-logger.ts';
import { gatewaySettings } from './gateway-parts.ts';
import { openSessions } from './open-sessions.ts';
import { OpenedTokens } from './open-tokens.ts';
import type {
  EndedCall,
  FromWorker,
  QuestionName,
  ToWorker,
  WorkerAnswers,
  WorkerQuestion,
  WorkerTask,
} from './worker-messages.ts';

const questions = new Map<number, LinkedAbort>();
const healths = new Map<number, (document: Readonly<Record<string, unknown>>) => void>();
collectEarly();
const delay = monitorEventLoopDelay({ resolution: 10 });
delay.enable();
let ended: EndedCall[] = [];
let lastHealth = 0;
let countRunning = (): number => 0;

interface Served {
  readonly gateway: ModelGateway;
  readonly server: FastifyInstance;
  /** null = there are none. */
  readonly sessions: SessionServer | null;
}

function say(message: FromWorker): void {
  flush();
  tellServer(message);
}

function flush(): void {
  if (ended.length === 0) return;
  const told = ended;
  ended = [];
  tellServer({ kind: 'calls', ended: told, running: countRunning() } satisfies FromWorker);
}

const logger = toldLogger((line) => say({ kind: 'log', ...line }));

async function serve(task: WorkerTask): Promise<Served & { readonly url: string }> {
  const { config, worker, port, held } = task;
  let url = '';
  const settings = gatewaySettings(config, { clock: systemClock, logger });
  const tokens = new OpenedTokens(config, systemClock);
  const gateway = new ModelGateway({
    tokens: tokens.mode,
    ...{ clock: systemClock, logger, openEngine, policy: new UrlPolicy(config.callbacks) },
    ...settings,
    capture: settings.capture === null ? null : keptForServer(settings.capture),
    baseUrl: () => `${url}/v1`,
    onCall: (call, used) => {
      ended.push({ call, used });
      if (ended.length === 1) setImmediate(flush);
    },
  });
  countRunning = () => gateway.runningCalls;
  for (const route of held) gateway.takeOver(route);
  const server = buildDataServer({
    ...{ logger, limits: { ...defaultServerLimits, bodyBytes: config.limits.bodyBytes } },
    health: async () => {
      const identity = { gateway_worker: worker, ...sessionIdentity(sessions) };
      return { ...(await askHealth()), ...identity };
    },
    mountGateway: (app) => registerGateway(app, gateway),
  });
  const sources = { variables: process.env, baseDir: config.baseDir };
  await tokens.ready();
  const sessions = await openSessions(config, {
    ...{ clock: systemClock, logger, sources },
    openCodec: () => tokens.codec(),
  });
  if (sessions !== null) registerSessions(server, sessions);
  url = await listen(server, { host: config.listen.dataHost, port }, 'listen.data_port');
  return { gateway, server, sessions, url };
}

/** Files are removed by the server alone: a process that was stuck carries out late what it was asked, when the rollout may be on another one. */
function keptForServer(capture: CallCapture): CallCapture {
  return {
    open: (...opening) => capture.open(...opening),
    fileOf: (rolloutId) => capture.fileOf(rolloutId),
    left: () => Promise.resolve([]),
    forget: () => Promise.resolve(),
  };
}

async function askHealth(): Promise<Readonly<Record<string, unknown>>> {
  lastHealth += 1;
  const number = lastHealth;
  const { promise, resolve } = Promise.withResolvers<Readonly<Record<string, unknown>>>();
  healths.set(number, resolve);
  say({ kind: 'health', number });
  return await promise;
}

async function carryOut(
  question: WorkerQuestion,
  { gateway, server, sessions }: Served,
  signal: AbortSignal,
): Promise<WorkerAnswers[QuestionName]> {
  switch (question.name) {
    case 'register':
      return await gateway.register(question.request);
    case 'revoke':
      await gateway.revoke(question.rolloutId);
      return null;
    case 'abort':
      return await gateway.abort(question.rolloutId);
    case 'captured':
      return await gateway.captured(question.rolloutId);
    case 'forget':
      await gateway.forget(question.rolloutId);
      return null;
    case 'probe':
      return await gateway.probe(question.rolloutId, signal);
    case 'activity':
      return await Promise.all(question.rolloutIds.map((id) => gateway.activity(id)));
    case 'vitals': {
      const { liveRoutes: routes, runningCalls: callsRunning } = gateway;
      const vitals = { routes, callsRunning, process: vitalsOf(delay) };
      delay.reset();
      return vitals;
    }
    case 'stop listening':
      await closeServer(server);
      return null;
    case 'close':
      await gateway.close();
      await sessions?.close();
      return null;
  }
}

async function answer(
  { number, question }: { readonly number: number; readonly question: WorkerQuestion },
  serving: Promise<Served>,
): Promise<void> {
  using link = new LinkedAbort([]);
  questions.set(number, link);
  try {
    const value = await carryOut(question, await serving, link.signal);
    say({ kind: 'answer', number, value });
  } catch (error) {
    say({ kind: 'refusal', number, fault: faultOf(error) });
  } finally {
    questions.delete(number);
  }
}

function make(task: WorkerTask): void {
  const serving = serve(task);
  serving.then(
    ({ url }) => say({ kind: 'made', url }),
    (error: unknown) => say({ kind: 'failed', fault: faultOf(error) }),
  );
  process.on('message', (message: ToWorker) => {
    if (message.kind === 'question') void answer(message, serving);
    else if (message.kind === 'give up')
      questions.get(message.number)?.abort(new Error('nobody waits for it any more'));
    else if (message.kind === 'health') {
      healths.get(message.number)?.(message.document);
      healths.delete(message.number);
    }
  });
}

livesWithServer((why, told) => {
  const crashed: FromWorker = { kind: 'crashed', why };
  tellServer(crashed, told);
});
process.once('message', (message: ToWorker) => {
  if (message.kind === 'make') make(message.task);
});
