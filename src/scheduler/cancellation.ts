/**
 * Cancelling: in every phase, before submission, and twice. Whoever is cancelled gets no callback any more; the receipt says what was ended and what is
 * confirmed gone, and a second cancellation gets the same one.
 */
import { messageOf, RolloutError, type Phase } from '../core/errors.ts';
import type { CancelDisposition, CancelSelector } from '../wire/rollout/cancel.ts';
import type { CancelReceipt } from '../wire/rollout/receipt.ts';
import { isTerminal } from '../wire/rollout/rollout-state.ts';
import type { AbortReceipt } from '../backends/execution-backend.ts';
import { ownDiagnostics } from './deliveries.ts';
import type { LiveRollout } from './live-rollout.ts';
import { cancelledOutcome } from './outcomes.ts';
import type { Caller, RolloutService } from './rollout-service.ts';
import { seeThrough } from './own-ends.ts';
import { endWithoutSamples } from './samples-of-run.ts';
import { backendName, type SchedulerCore } from './scheduler-core.ts';
import { maySee } from './tenants.ts';

/** So long a full disk may hold up an answer beyond the time that ending itself has. */
const diskPatienceMs = 250;

export async function cancelRollouts(
  selector: CancelSelector,
  caller: Caller,
  core: SchedulerCore,
): ReturnType<RolloutService['cancel']> {
  const ids = selector.kind === 'ids' ? new Set(selector.ids) : matching(selector, caller, core);
  const receipts = await Promise.all(
    [...ids].map(async (id) => [id, await cancelOne(id, caller, core)] as const),
  );
  return new Map(receipts);
}

function matching(
  selector: Exclude<CancelSelector, { kind: 'ids' }>,
  caller: Caller,
  core: SchedulerCore,
): readonly string[] {
  const prefix = selector.kind === 'prefix' ? selector.prefix : '';
  return [...core.live.values()]
    .filter(
      ({ id, tenant, endedBy }) =>
        id.startsWith(prefix) && maySee(caller, tenant) && endedBy === null,
    )
    .map(({ id }) => id);
}

async function cancelOne(id: string, caller: Caller, core: SchedulerCore): Promise<CancelReceipt> {
  // One that is just being accepted is there when that is done.
  await core.accepting.get(id)?.catch(() => undefined);
  const live = core.live.get(id);
  if (live === undefined) return await cancelUnknown(id, caller, core);
  if (!maySee(caller, live.tenant)) return notFound(id, core);
  if (live.receipt !== null) return await live.receipt;
  if (!live.claim('controller')) {
    if (live.endedBy !== 'shutdown') return notFound(id, core);
    // What a shutdown puts back would run after the restart.
    const { receipt, written } = cancelPutBack(live, core);
    live.receipt = receipt;
    core.background(seeThrough(live, written, core));
    return await receipt;
  }
  const cancelling = cancelLive(live, core);
  live.receipt = cancelling.receipt;
  live.ending = cancelling.gone;
  core.background(seeThrough(live, cancelling.gone, core));
  return await live.receipt;
}

/** It ended, was cancelled before, or never came: then a later submission of the id is refused. */
async function cancelUnknown(
  id: string,
  caller: Caller,
  core: SchedulerCore,
): Promise<CancelReceipt> {
  const { store } = core.parts;
  const known = await store.rollout(id);
  if (known !== null) {
    if (!maySee(caller, known.tenant)) return notFound(id, core);
    const [receipt] = await store.receipts(id);
    return receipt ?? notFound(id, core);
  }
  const owner = core.tenants.byPrefix(id);
  // Nobody may keep another tenant from submitting.
  if (owner !== null && !maySee(caller, owner)) return notFound(id, core);
  const receipt = notFound(id, core);
  await store.bury([{ id, tenant: core.tenants.of(id, caller), receipt }]);
  // It may have been submitted in the meantime: then it is there now, and it is what was meant.
  const submitted = core.live.get(id);
  return submitted === undefined ? receipt : await cancelOne(id, caller, core);
}

function notFound(rolloutId: string, core: SchedulerCore): CancelReceipt {
  return {
    ...{ rolloutId, disposition: 'not_found' satisfies CancelDisposition, stage: null },
    ...{ modelCallsEnded: 0, processesKilled: 0, confirmedGone: [] },
    ...{ isComplete: true, problem: null, durationMs: 0, at: core.parts.clock.now() },
  };
}

interface Cancelling {
  /** Within the time that a cancellation has; durable, unless the store cannot write: then it says so. */
  readonly receipt: Promise<CancelReceipt>;
  /** When everything of it is gone, however long that takes. */
  readonly gone: Promise<void>;
}

function cancelLive(rollout: LiveRollout, core: SchedulerCore): Cancelling {
  const { gateway, callbacks, clock } = core.parts;
  const startedMs = clock.monotonicMs();
  const stage = rollout.progress?.stage ?? rollout.state;
  const reason = new RolloutError('CANCELLED', 'cancelled by the controller', {
    phase: phaseOf(rollout),
  });
  const ended = Promise.allSettled([
    gateway.abort(rollout.id),
    rollout.execution?.abort(reason) ?? Promise.resolve(null),
    callbacks.withdraw(rollout.id),
    core.queue.remove(rollout.id),
  ]);
  const { receipt, written } = writeReceipt(rollout, { ended, stage, startedMs }, core);
  const gone = (async () => {
    await Promise.all([ended, written]);
  })();
  return { receipt, gone };
}

/** The shutdown ends what it runs; whether it waits again is known when the changes before are written. */
function cancelPutBack(rollout: LiveRollout, core: SchedulerCore): WrittenReceipt {
  const ended = Promise.allSettled([
    Promise.resolve({ callsEnded: 0 }),
    Promise.resolve(null),
    Promise.resolve(),
    Promise.resolve(false),
  ]);
  const startedMs = core.parts.clock.monotonicMs();
  return writeReceipt(rollout, { ended, stage: 'queued', startedMs }, core);
}

type Ended = [
  PromiseSettledResult<{ readonly callsEnded: number }>,
  PromiseSettledResult<AbortReceipt | null>,
  PromiseSettledResult<void>,
  PromiseSettledResult<boolean>,
];

interface WrittenReceipt {
  readonly receipt: Promise<CancelReceipt>;
  /** When it is durable, however long that takes. */
  readonly written: Promise<CancelReceipt>;
}

interface CancelWork {
  readonly ended: Promise<Ended>;
  readonly stage: string;
  readonly startedMs: number;
}

function writeReceipt(rollout: LiveRollout, work: CancelWork, core: SchedulerCore): WrittenReceipt {
  const ended = within(core.options.limits.cancelMs, work.ended, core);
  const written = ended.then((parts) => writeDown(rollout, { ...work, parts }, core));
  written.catch(() => undefined);
  return { written, receipt: answered(rollout, { ...work, ended, written }, core) };
}

/** A store that takes its time is waited for; one that cannot write is not: the cancellation goes on, and the answer says what is missing. */
async function answered(
  rollout: LiveRollout,
  work: Omit<CancelWork, 'ended'> & {
    readonly ended: Promise<Ended | null>;
    readonly written: Promise<CancelReceipt>;
  },
  core: SchedulerCore,
): Promise<CancelReceipt> {
  const parts = await work.ended;
  for (;;) {
    const receipt = await within(diskPatienceMs, work.written, core);
    if (receipt !== null) return receipt;
    if (rollout.diskSince === null) continue;
    const early = receiptOf(rollout, { ...work, parts }, core);
    const problem = 'the store cannot write it down: it is cancelled when there is space';
    return {
      ...{ ...early, isComplete: false },
      problem: early.problem === null ? problem : `${early.problem}; ${problem}`,
    };
  }
}

function receiptOf(
  rollout: LiveRollout,
  work: Omit<CancelWork, 'ended'> & { readonly parts: Ended | null },
  { parts: { clock }, options }: SchedulerCore,
): CancelReceipt {
  return {
    rolloutId: rollout.id,
    disposition: rollout.state === 'queued' ? 'cancelled_queued' : 'cancelled_running',
    stage: work.stage,
    ...findings(work.parts, options.limits.cancelMs),
    durationMs: Math.max(0, Math.round(clock.monotonicMs() - work.startedMs)),
    at: clock.now(),
  };
}

async function writeDown(
  rollout: LiveRollout,
  work: Omit<CancelWork, 'ended'> & { readonly parts: Ended | null },
  core: SchedulerCore,
): Promise<CancelReceipt> {
  const written = Promise.withResolvers<CancelReceipt>();
  const isDone = await core.ledger.advance(rollout, () => {
    const isOurs = rollout.endedBy === 'controller' || rollout.state === 'queued';
    if (!isOurs || isTerminal(rollout.state)) return null;
    const receipt = receiptOf(rollout, work, core);
    written.resolve(receipt);
    const outcome = endWithoutSamples(cancelledOutcome(phaseOf(rollout)), rollout);
    const diagnostics = ownDiagnostics(outcome, backendName(core));
    rollout.diagnostics = diagnostics;
    return { to: 'cancelled', by: 'controller', outcome, diagnostics, withdraw: true, receipt };
  });
  return isDone ? await written.promise : notFound(rollout.id, core);
}

/** null = not done in time. */
async function within<T>(ms: number, work: Promise<T>, core: SchedulerCore): Promise<T | null> {
  const timer = new AbortController();
  try {
    return await Promise.race([
      work,
      core.parts.clock.sleep(ms, timer.signal).then(
        () => null,
        () => null,
      ),
    ]);
  } finally {
    timer.abort();
  }
}

function findings(
  ended: Ended | null,
  limitMs: number,
): Pick<
  CancelReceipt,
  'modelCallsEnded' | 'processesKilled' | 'confirmedGone' | 'isComplete' | 'problem'
> {
  if (ended === null)
    return {
      ...{ modelCallsEnded: 0, processesKilled: 0, confirmedGone: [], isComplete: false },
      problem: `not everything of it was gone within ${limitMs / 1000} s; it is still being ended`,
    };
  const [route, execution] = ended;
  const abort = execution.status === 'fulfilled' ? execution.value : null;
  const problems = [
    ...ended.flatMap((part) => (part.status === 'rejected' ? [messageOf(part.reason)] : [])),
    ...(abort?.problem == null ? [] : [abort.problem]),
  ];
  return {
    modelCallsEnded: route.status === 'fulfilled' ? route.value.callsEnded : 0,
    processesKilled: abort?.processesKilled ?? 0,
    confirmedGone: abort?.confirmedGone ?? [],
    isComplete: problems.length === 0 && (abort?.isComplete ?? true),
    problem: problems.length === 0 ? null : problems.join('; '),
  };
}

export function phaseOf(rollout: LiveRollout): Phase {
  if (rollout.state === 'queued') return 'queue';
  if (rollout.state === 'grading') return 'verifier';
  return rollout.hasAgentBegun ? 'agent' : 'environment';
}
