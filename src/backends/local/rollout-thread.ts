/** Entry of a worker thread: loads the user's modules once, then carries out one order at a time. */
import { setImmediate as turn } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { workerData, type MessagePort } from 'node:worker_threads';
import type { FileReference } from '../../wire/runner/code-reference.ts';
import { failureOf } from './thread-failure.ts';
import { gradedSample, graderSample, workflowSample } from './thread-sample.ts';
import type {
  FromThread,
  GradeOrder,
  ThreadOrder,
  ThreadReport,
  ThreadSettings,
  ToThread,
  WorkflowOrder,
} from './thread-messages.ts';
import type { AgentWorkflowClass, GraderClass } from './user-code.ts';

const settings = workerData as ThreadSettings;
const port = settings.port as MessagePort;
const say = (message: FromThread): void => port.postMessage(message);

interface UserCode {
  readonly workflow: AgentWorkflowClass;
  readonly grader: GraderClass | null;
}

async function load(): Promise<UserCode> {
  return {
    workflow: (await exported(settings.workflow, 'run')) as AgentWorkflowClass,
    grader: settings.grader && ((await exported(settings.grader, 'grade')) as GraderClass),
  };
}

async function exported({ file, name }: FileReference, method: string): Promise<unknown> {
  const module = (await import(pathToFileURL(file).href)) as Readonly<Record<string, unknown>>;
  const found = module[name];
  if (typeof found !== 'function') throw new Error(`${file} exports no class ${name}`);
  const prototype = found.prototype as Readonly<Record<string, unknown>> | undefined;
  if (typeof prototype?.[method] !== 'function')
    throw new Error(`class ${name} of ${file} has no method ${method}`);
  return found;
}

async function runWorkflow(code: UserCode, order: WorkflowOrder, signal: AbortSignal) {
  const { config, metadata, artifactsDir, model } = order;
  const prompt = order.prompt as readonly Readonly<Record<string, unknown>>[];
  const answer: unknown = await new code.workflow(config).run({
    prompt,
    config,
    metadata: metadata as Readonly<Record<string, unknown>> | null,
    artifactsDir,
    signal,
    model,
  });
  return workflowSample(answer);
}

async function grade(code: UserCode, order: GradeOrder, signal: AbortSignal) {
  if (code.grader === null) throw new Error('there is no grader');
  const { config, label, metadata, artifactsDir, model } = order;
  const sample = graderSample(order.sample);
  await new code.grader(config).grade({
    label,
    sample,
    config,
    metadata: metadata as Readonly<Record<string, unknown>> | null,
    artifactsDir,
    signal,
    model,
    setReward: (reward) => {
      sample.reward = reward;
    },
  });
  return gradedSample(sample);
}

async function carryOut(code: UserCode, order: ThreadOrder, signal: AbortSignal) {
  return order.kind === 'workflow'
    ? await runWorkflow(code, order, signal)
    : await grade(code, order, signal);
}

async function report(
  code: UserCode,
  { run, order }: { readonly run: number; readonly order: ThreadOrder },
  signal: AbortSignal,
): Promise<ThreadReport> {
  const since = performance.now();
  const busyBefore = process.getActiveResourcesInfo().length;
  const answer = await carryOut(code, order, signal).then(
    (sample) => ({ sample, failure: null }),
    (error: unknown) => ({ sample: null, failure: failureOf(error) }),
  );
  const elapsedMs = performance.now() - since;
  const wasCancelled = signal.aborted;
  const isIdle = await comesToRest(busyBefore);
  // Before the answer, or the next rollout in this thread would be taken for who printed it.
  await Promise.all([process.stdout, process.stderr].map(printed));
  return { run, elapsedMs, wasCancelled, isIdle, ...answer };
}

/** How many turns of the loop things have to end that end by themselves. */
const restTurns = 8;

/**
 * Whether no more is at work than before. A kept connection of `fetch` holds the loop for a turn or two after its answer; a timer, a server or a
 * request that nobody waits for holds it longer.
 */
async function comesToRest(busyBefore: number): Promise<boolean> {
  for (let turns = 0; turns < restTurns; turns += 1) {
    if (process.getActiveResourcesInfo().length <= busyBefore) return true;
    await turn();
  }
  return false;
}

/** Resolves when the server has all of it. */
async function printed(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.writableLength > 0) await new Promise((resolve) => stream.write('', resolve));
}

async function serve(): Promise<void> {
  let code: UserCode | null = null;
  let running: { readonly run: number; readonly abort: AbortController } | null = null;
  port.on('message', (message: ToThread) => {
    if (message.kind === 'cancel') {
      if (running?.run === message.run)
        running.abort.abort(new DOMException(message.reason, 'AbortError'));
      return;
    }
    if (code === null) return;
    const abort = new AbortController();
    running = { run: message.run, abort };
    void report(code, message, abort.signal).then((ended) => say({ kind: 'ended', report: ended }));
  });
  code = await load();
  say({ kind: 'ready' });
}

// Listening keeps the thread, so that the server hears this before the end.
serve().catch((error: unknown) => say({ kind: 'broken', message: failureOf(error).message }));
