/**
 * One batch under oversampling against a real server and a real engine process: durations with a long tail, attempts that are lost to the machine, rows that cannot work.
 * Answers what happened, measured from outside: by the server's own instants and the engine's log.
 */
import { readFile } from 'node:fs/promises';
import { LinkedAbort, never } from '../../src/core/linked-abort.ts';
import { RouterFleet } from '../../src/collector/abort/router-fleet.ts';
import type { AbortReceipt } from '../../src/collector/abort/abort-receipt.ts';
import type { BatchReport } from '../../src/collector/batch.ts';
import { SynchronousDriver } from '../../src/collector/drivers/synchronous-driver.ts';
import type { CollectorEvent } from '../../src/collector/events.ts';
import type { MemberRequest } from '../../src/collector/member.ts';
import type { RolloutPort } from '../../src/collector/rollout-port.ts';
import { seededRandom } from '../../src/core/seeded-random.ts';
import { ServerRollouts } from '../../src/collector/server/server-rollouts.ts';
import { systemClock } from '../../src/core/clock.ts';
import { openEngine } from '../../src/engines/registry.ts';
import type { RolloutDetailDocument } from '../../src/wire/api/rollout.ts';
import { scene } from './scripted-rollouts.ts';

export interface OversamplingSize {
  readonly batchGroups: number;
  readonly startGroups: number;
  readonly groupSize: number;
  /** Rows that fail whatever is tried. */
  readonly badRows: readonly number[];
  /** Share of attempts that the machine loses. */
  readonly lossShare: number;
  /** Pareto law of durations. */
  readonly scaleMs: number;
  readonly alpha: number;
  readonly capMs: number;
  readonly seed: number;
  /** Whether the agent's hook is there. */
  readonly hasHook: boolean;
  readonly drainMs: number;
}

export interface OversamplingResult {
  readonly report: BatchReport;
  readonly receipt: AbortReceipt;
  readonly keptGroups: readonly number[];
  /** Groups of which something was heard, each as often as it was. */
  readonly heardOf: readonly number[];
  /** From the end, at the server, of the last member that the batch needed, to the batch in hand. */
  readonly handOverMs: number;
  /** Rollouts of the run that the server still has after the abort. */
  readonly liveAfter: number;
  /** Calls that the engine got later than a second after the abort had begun. */
  readonly callsLate: number;
  /** And after its receipt. */
  readonly callsAfter: number;
}

export async function runOversampling(
  size: OversamplingSize,
  at: { readonly serverUrl: string; readonly engineUrl: string; readonly engineLog: string },
): Promise<OversamplingResult> {
  const rollouts = new ServerRollouts({
    ...{ serverUrl: at.serverUrl, serverKey: null, modelUrl: `${at.engineUrl}/v1` },
    ...{ modelKey: null, train: false, isGraded: true, agentTimeoutSec: null },
    ...{
      graderTimeoutSec: null,
      listen: {},
      watchMs: 30_000,
      patienceMs: 300_000,
      clock: systemClock,
      fetch,
    },
  });
  const fleet = new RouterFleet({
    ...{ routerUrl: at.engineUrl, engineUrls: [], kind: 'sglang', apiKey: null, open: openEngine },
  });
  const abort = { drainMs: size.drainMs, settleMs: 5_000, hookMs: 20_000, passes: 3 };
  const { batchGroups, startGroups, groupSize } = size;
  const parts = scene(
    { batchGroups, startGroups, groupSize, topUp: 'whole', surplus: 'keep', abort },
    {
      ...{ rollouts: new Storm(rollouts, size), fleet, clock: systemClock },
      findHook: size.hasHook ? () => Promise.resolve(rollouts.abort) : null,
    },
  );
  const runName = `storm${size.seed}${size.hasHook ? '' : 'c'}`;
  const driver = new SynchronousDriver(parts, runName);
  try {
    const batch = await driver.collect(never);
    const handedOverAt = Date.now();
    if (batch === null) throw new Error('the dataset has ended');
    const receipt = await batch.quiet;
    if (receipt === null) throw new Error('nothing was aborted');
    const goneAt = Date.now();
    // Whoever would call again has the time to.
    await systemClock.sleep(500, never);
    const kept = batch.groups.map(({ members }) => members.map(({ request }) => request.rolloutId));
    const calls = await callsOf(at.engineLog);
    return {
      ...{ report: batch.report(), receipt, heardOf: heardOf(parts.events) },
      keptGroups: batch.groups.map(({ seed }) => seed.groupIndex),
      handOverMs: handedOverAt - (await lastEnd(at.serverUrl, kept)),
      liveAfter: await liveRollouts(at.serverUrl, runName),
      callsLate: calls.filter((ms) => ms > receipt.at.getTime() + 1_000).length,
      callsAfter: calls.filter((ms) => ms > goneAt).length,
    };
  } finally {
    await driver.stop('shutdown');
    await rollouts.close();
    await fleet.close();
  }
}

/** What is the matter with a result, in words; the same at every size. */
export function problemsOf(size: OversamplingSize, result: OversamplingResult): readonly string[] {
  const { report, receipt, keptGroups, heardOf: heard, liveAfter, callsAfter, callsLate } = result;
  const problems: string[] = [];
  const expect = (isSo: boolean, what: string): void => {
    if (!isSo) problems.push(what);
  };
  expect(keptGroups.length === size.batchGroups, `${keptGroups.length} groups were kept`);
  const accounted = [...keptGroups, ...heard].sort((a, b) => a - b);
  expect(
    accounted.length === report.groupsStarted && new Set(accounted).size === accounted.length,
    `${report.groupsStarted} groups were started, these are accounted for: ${accounted.join(' ')}`,
  );
  // A wrong row may still be on its way when the batch is full: then the abort ends it.
  for (const { seed, reason, detail } of report.dropped) {
    const isBad = size.badRows.includes(seed.row.rowIndex);
    const isRight = isBad ? detail === 'TASK_NOT_FOUND' : reason !== 'given-up';
    expect(isRight || reason === 'aborted', `row ${seed.row.rowIndex}: ${reason} ${detail ?? ''}`);
  }
  const bad = size.badRows.filter((row) => keptGroups.includes(row));
  expect(bad.length === 0, `rows that cannot work were handed over: ${bad.join(' ')}`);
  expect(receipt.isComplete, 'the receipt is not complete');
  expect(
    receipt.rollouts.every(({ how, confirmed }) => how !== 'ended' || confirmed?.isGone === true),
    'a straggler ended without a confirmation',
  );
  expect(liveAfter === 0, `${liveAfter} rollouts live on`);
  expect(callsAfter + callsLate === 0, `${callsAfter + callsLate} calls came late`);
  const redone = report.rolloutsRefilled / report.rolloutsStarted;
  expect(redone < 0.08, `${(100 * redone).toFixed(1)} % of the work was done again`);
  return problems;
}

/** Gives every attempt its own time and fate, by the seed. */
class Storm implements RolloutPort {
  readonly #port: RolloutPort;
  readonly #size: OversamplingSize;

  constructor(port: RolloutPort, size: OversamplingSize) {
    this.#port = port;
    this.#size = size;
  }

  async run(request: MemberRequest, signal: AbortSignal) {
    using link = new LinkedAbort([signal]);
    const told = { ...request, row: { ...request.row, metadata: { null: this.#fate(request) } } };
    return await this.#port.run(told, link.signal);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #fate({ index, attempt, row, memberIndex }: MemberRequest) {
    const { seed, badRows, lossShare, scaleMs, alpha, capMs } = this.#size;
    const random = seededRandom(seed * 1_000_003 + index * 31 + attempt);
    random();
    const isLost = random() < lossShare;
    const duration = Math.min(capMs, scaleMs * (1 - random()) ** (-1 / alpha));
    if (badRows.includes(row.rowIndex)) return { duration_ms: 50, fail: 'TASK_NOT_FOUND' };
    if (isLost) return { duration_ms: duration / 2, fail: 'ENVIRONMENT_LOST' };
    // It asks its model at the end: one that is asleep when the engines are told to end everything does not notice.
    return { duration_ms: duration, agent_calls: 2, reward: memberIndex % 2 };
  }
}

/** Dropped and returned groups, as they were told one by one. */
function heardOf(events: readonly CollectorEvent[]): readonly number[] {
  return events.flatMap((event) => {
    if (event.type === 'group:dropped') return [event.group.seed.groupIndex];
    return event.type === 'group:returned' ? [event.seed.groupIndex] : [];
  });
}

/** When the last group of the batch had its last end, by the server. */
async function lastEnd(serverUrl: string, kept: readonly (readonly string[])[]): Promise<number> {
  let last = 0;
  for (const id of kept.flat()) {
    const answer = await fetch(`${serverUrl}/api/v1/rollouts/${id}`);
    const { ended_at: endedAt } = (await answer.json()) as RolloutDetailDocument;
    last = Math.max(last, new Date(endedAt ?? 0).getTime());
  }
  return last;
}

async function liveRollouts(serverUrl: string, prefix: string): Promise<number> {
  const states = 'queued,running,grading';
  const answer = await fetch(`${serverUrl}/api/v1/rollouts?prefix=${prefix}-&state=${states}`);
  return ((await answer.json()) as { readonly rollouts: readonly unknown[] }).rollouts.length;
}

/** When each call began. */
async function callsOf(file: string): Promise<readonly number[]> {
  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n');
  return lines
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { time: string; started_ms: number; ended_ms: number })
    .map(({ time, started_ms, ended_ms }) => Date.parse(time) - (ended_ms - started_ms));
}
