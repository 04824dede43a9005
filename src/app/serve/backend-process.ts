/**
 * Entry of the process in which a backend works whose trials start programs. The parts of the application are made here once more; what they share with the
 * server's are files and their locks. What nobody waits for, progress and ordinary lines of the log, goes over some times a second, and always before what follows it.
 */
import type {
  Execution,
  ExecutionBackend,
  ExecutionHooks,
  ExecutionRequest,
  ExecutionResult,
} from '../../backends/execution-backend.ts';
import { errorOf, faultOf } from '../../core/error-fault.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import { composeApp } from '../compose.ts';
import { livesWithServer, tellServer } from './lives-with-server.ts';
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

const executions = new Map<number, Execution>();
const calls = new Map<number, LinkedAbort>();
const hooks = new Map<number, PromiseWithResolvers<undefined>>();
/** Each message costs both sides a call of the system and a turn of their loops. */
const heldMs = 50;
let held: FromBackend[] = [];
let holding: NodeJS.Timeout | null = null;
let lastHook = 0;

/** Throws when the message cannot be said. */
function say(message: FromBackend): void {
  const before = takeHeld();
  if (before.length === 0) tellServer(message);
  else
    try {
      tellServer({ kind: 'several', messages: [...before, message] } satisfies FromBackend);
    } catch (error) {
      tellServer({ kind: 'several', messages: before } satisfies FromBackend);
      throw error;
    }
}

/** Of plain values only: whether it can be said shows when nobody can be told any more. */
function sayLater(message: FromBackend): void {
  held.push(message);
  holding ??= setTimeout(flush, heldMs);
}

function flush(): void {
  const messages = takeHeld();
  if (messages.length > 0) tellServer({ kind: 'several', messages } satisfies FromBackend);
}

function takeHeld(): readonly FromBackend[] {
  if (holding !== null) clearTimeout(holding);
  holding = null;
  const messages = held;
  held = [];
  return messages;
}

const logger = toldLogger((line) => {
  const message = { kind: 'log', ...line } as const;
  const isPlain = Object.values(line.fields).every(isPrimitive);
  if (isPlain && (line.level === 'info' || line.level === 'debug')) sayLater(message);
  else say(message);
});

function isPrimitive(value: unknown): boolean {
  return value === null || ['string', 'number', 'boolean', 'undefined'].includes(typeof value);
}

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
      const message = { kind: 'progress', key, progress } as const;
      const at = held.findLastIndex((one) => one.kind === 'progress' && one.key === key);
      const before = held[at];
      // Of a stage the newest says all.
      if (before?.kind === 'progress' && before.progress.stage === progress.stage)
        held[at] = message;
      else sayLater(message);
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

livesWithServer((why, told) => {
  const crashed: FromBackend = { kind: 'crashed', why };
  flush();
  tellServer(crashed, told);
});
process.once('message', (message: ToBackend) => {
  if (message.kind === 'make') void make(message.task);
});
