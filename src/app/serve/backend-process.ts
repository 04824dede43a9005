/**
 * Entry of the process in which a backend works whose trials start programs. The parts of the application are made here once more; what they share with the
 * server's are files and their locks. Progress goes over some times a second, the newest of each stage, and always before what follows it.
 */
import type {
  Execution,
  ExecutionBackend,
  ExecutionHooks,
  ExecutionRequest,
  ExecutionResult,
} from '../../backends/execution-backend.ts';
import { errorOf, faultOf } from '../../core/error-fault.ts';
import { messageOf } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { RolloutProgress } from '../../wire/rollout/progress.ts';
import { composeApp } from '../compose.ts';
import { makeBackendHere } from './open-backend.ts';
import type {
  BackendAnswer,
  BackendCall,
  BackendFacts,
  BackendTask,
  FromBackend,
  ToBackend,
} from './backend-messages.ts';
import { toldLogger } from './told-logger.ts';

if (process.send === undefined) throw new Error('this file is started by the server');
const send = process.send.bind(process);
const executions = new Map<number, Execution>();
const calls = new Map<number, LinkedAbort>();
const hooks = new Map<number, PromiseWithResolvers<undefined>>();
/** Each message costs both sides a call of the system and a turn of their loops. */
const progressMs = 50;
/** By execution, the newest last. */
const progresses = new Map<number, readonly RolloutProgress[]>();
let flushing: NodeJS.Timeout | null = null;
let lastHook = 0;

function say(message: FromBackend): void {
  flush();
  send(message);
}

function flush(): void {
  if (flushing === null) return;
  clearTimeout(flushing);
  flushing = null;
  const told = [...progresses];
  progresses.clear();
  send({ kind: 'progress', told } satisfies FromBackend);
}

const logger = toldLogger((line) => say({ kind: 'log', ...line }));

function factsOf(backend: ExecutionBackend): BackendFacts {
  const { kind, capturesFinalResult } = backend;
  return {
    ...{ kind, capturesFinalResult, health: backend.health() },
    canProbe: backend.probe !== undefined,
    canForget: backend.forget !== undefined,
  };
}

async function ask(key: number, result: ExecutionResult | null): Promise<void> {
  lastHook += 1;
  const number = lastHook;
  const heard = Promise.withResolvers<undefined>();
  say({ kind: 'hook', number, key, result });
  hooks.set(number, heard);
  await heard.promise;
}

function hooksOf(key: number): ExecutionHooks {
  return {
    agentBegins: () => ask(key, null),
    workflowCompleted: (result) => ask(key, result),
    progress: (progress) => {
      const before = progresses.get(key) ?? [];
      const isSame = before.at(-1)?.stage === progress.stage;
      progresses.set(key, [...(isSame ? before.slice(0, -1) : before), progress]);
      flushing ??= setTimeout(flush, progressMs);
    },
  };
}

async function execute(
  { key, request }: { readonly key: number; readonly request: ExecutionRequest },
  backend: ExecutionBackend,
): Promise<void> {
  try {
    const execution = backend.execute(request, hooksOf(key));
    executions.set(key, execution);
    say({ kind: 'ended', key, result: await execution.result });
  } catch (error) {
    say({ kind: 'broken', key, fault: faultOf(error) });
  }
}

async function carryOut(
  call: BackendCall,
  backend: ExecutionBackend,
  signal: AbortSignal,
): Promise<BackendAnswer> {
  switch (call.name) {
    case 'start':
      await backend.start(signal);
      return factsOf(backend);
    case 'probe':
      return (await backend.probe?.(call.id, signal)) ?? null;
    case 'forget':
      await backend.forget?.(call.ids);
      return null;
    case 'abort':
      return (await executions.get(call.key)?.abort(errorOf(call.reason))) ?? null;
    case 'release': {
      const execution = executions.get(call.key);
      try {
        await (call.archived === null ? execution?.release() : execution?.release(call.archived));
      } finally {
        executions.delete(call.key);
      }
      return null;
    }
    case 'close':
      await backend.close();
      return null;
    case 'ping':
      return null;
  }
}

async function answer(
  { number, call }: { readonly number: number; readonly call: BackendCall },
  backend: ExecutionBackend,
): Promise<void> {
  using link = new LinkedAbort([]);
  calls.set(number, link);
  try {
    say({ kind: 'answer', number, value: await carryOut(call, backend, link.signal) });
  } catch (error) {
    say({ kind: 'refusal', number, fault: faultOf(error) });
  } finally {
    calls.delete(number);
  }
}

function hear(message: ToBackend, backend: ExecutionBackend): void {
  switch (message.kind) {
    case 'execute':
      void execute(message, backend);
      break;
    case 'call':
      void answer(message, backend);
      break;
    case 'give up':
      calls.get(message.number)?.abort(errorOf(message.reason));
      break;
    case 'make':
      break; // it is made
    case 'hooked': {
      const hook = hooks.get(message.number);
      hooks.delete(message.number);
      if (message.fault === null) hook?.resolve(undefined);
      else hook?.reject(errorOf(message.fault));
    }
  }
}

async function make({ config, composition }: BackendTask): Promise<void> {
  try {
    const ports = await composeApp(composition.variables, composition.cwd);
    const backend = await makeBackendHere(config, { ports, logger });
    process.on('message', (message: ToBackend) => hear(message, backend));
    say({ kind: 'made', facts: factsOf(backend) });
  } catch (error) {
    say({ kind: 'failed', fault: faultOf(error) });
  }
}

// What a terminal sends goes to the server too, which says what is to be done.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
// Without a server nothing of this is anybody's; the next one removes the sandboxes.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
// Whoever reads what it prints may go: that ends its output, and no rollout.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
process.on('uncaughtException', (error: unknown) => {
  process.stderr.write(
    `${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
  );
  const crashed: FromBackend = { kind: 'crashed', why: messageOf(error) };
  send(crashed, () => process.exit(1));
});
process.once('message', (message: ToBackend) => {
  if (message.kind === 'make') void make(message.task);
});
