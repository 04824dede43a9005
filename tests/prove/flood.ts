/**
 * Must show: a flood of submissions over HTTP on each backend. Caps are never exceeded, the capacity is the counter at every one of 1,000 reads, refusals
 * and control calls are fast throughout, clients that obey all come to their end, tenants share by weight. Then the cap that follows the engine.
 * On harbor 32 run and 32 wait, and all but 450 of the clients go away when they are refused: there the shares
 * of the starts are judged and not those of the ends, since who went away is still counted in the line, and who obeys is told to come back later than places are free.
 * `LIVE=N`, `QUEUED=N` and `PATIENT=N` choose for native and harbor.
 * `BACKENDS=null,local,native,harbor,controls,kv` and `SUBMISSIONS=N` choose; times are judged on a machine that does nothing else (`TIMES=0` does not judge them).
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { runFlood, type FloodEvidence, type FloodOptions } from '../chaos/flood/flood.ts';
import { judgeFlood, quantile, sharesOf, type FloodLimits } from '../chaos/flood/judge-flood.ts';
import { swingKv } from '../chaos/flood/kv-swing.ts';
import { harborTable, quickTask, whyNoTrials, writeTrialTask } from '../chaos/trial-servers.ts';
import { bundledTasksDir } from '../support/slipway-cli.ts';

const workflow = path.join(import.meta.dirname, '../chaos/flood/quick-workflow.ts');
const times = process.env['TIMES'] === '0' ? null : { refusal: 50, control: 100 };
const wanted = (process.env['BACKENDS'] ?? 'null,local,native,harbor,controls,kv').split(',');
const submissions = Number(process.env['SUBMISSIONS'] ?? '5000');
const { LIVE, QUEUED, PATIENT } = process.env;
const limits: FloodLimits = { startTolerance: 0.1, endTolerance: 0.1, times };

const common: Omit<FloodOptions, 'backendFlags' | 'metadata'> = {
  ...{ submissions, overMs: 10_000, maxConcurrent: 64, maxQueueDepth: 256 },
  ...{ warmUps: 128, cancelEvery: 50, pauseMs: 20, leastReads: 1_000, limitMs: 600_000 },
};

/** A sandbox and what happens in it cost a part of a second of processor time: these floods take a quarter of an hour and more. */
function withSandboxes(live: number, queued: number, patient: number): SandboxedFlood {
  return {
    ...{ maxConcurrent: Number(LIVE ?? live), maxQueueDepth: Number(QUEUED ?? LIVE ?? queued) },
    limitMs: 45 * 60_000,
    patient: Math.min(Number(PATIENT ?? patient), submissions),
  };
}

type SandboxedFlood = Pick<FloodOptions, 'maxConcurrent' | 'maxQueueDepth' | 'limitMs' | 'patient'>;

const harborTask = await mkdtemp(path.join(os.tmpdir(), 'flood-task-'));

const floods: Readonly<Record<string, FloodOptions>> = {
  null: {
    ...common,
    backendFlags: ['--backend', 'null'],
    metadata: { null: { duration_ms: 1_000 } },
  },
  local: {
    ...common,
    backendFlags: [
      ...['--backend', 'local', '--backend-local-workflow', `${workflow}:QuickWorkflow`],
      ...['--backend-local-grader', `${workflow}:KindGrader`, '--backend-local-memory-mb', '32'],
    ],
    metadata: { duration_ms: 1_000 },
  },
  native: {
    ...{ ...common, ...withSandboxes(64, 256, submissions) },
    backendFlags: ['--backend', 'native'],
    config: ['[backend.native]', 'agent = "oracle"', 'environment = "local"', ''].join('\n'),
    metadata: { harbor_task: path.join(bundledTasksDir, 'file-answer') },
  },
  harbor: {
    ...{ ...common, ...withSandboxes(32, 32, 450), warmUps: 32, cancelEvery: 25 },
    backendFlags: [],
    config: harborTable('Quick', harborTask),
    metadata: {},
  },
};

const problems: string[] = [];
const say = (text: string): void => console.log(text);

function figures({ clients, healthMs, cancelMs, capacities, ...evidence }: FloodEvidence): void {
  const ms = (values: readonly number[]): string => quantile(values, 0.99).toFixed(1);
  const shares = [...sharesOf(evidence.contestedEnds)].map(
    ([name, share]) => `${name} ${(100 * share).toFixed(1)} %`,
  );
  say(
    `  ${evidence.accepted} accepted, ${clients.wentAway} went away, ${evidence.ended} ended, ${evidence.cancelled} cancelled in ${evidence.seconds.toFixed(0)} s; ${clients.refusedMs.length} refusals, p99 ${ms(clients.refusedMs)} ms`,
  );
  say(
    `  ${capacities.length} reads of health, p99 ${ms(healthMs)} ms; ${cancelMs.length} cancellations, p99 ${ms(cancelMs)} ms`,
  );
  say(`  shares ${shares.join(', ')}; the server counted ${JSON.stringify(evidence.server)}`);
}

for (const [name, options] of Object.entries(floods)) {
  if (!wanted.includes(name)) continue;
  const reason = name === 'native' || name === 'harbor' ? whyNoTrials(name) : null;
  if (reason !== null) {
    problems.push(`${name} cannot be shown here: ${reason}`);
    continue;
  }
  const comeBack = options.patient ?? options.submissions;
  say(
    `${name}: ${options.submissions} clients in 10 s of which ${comeBack} come back, ${options.maxConcurrent} run, ${options.maxQueueDepth} wait`,
  );
  if (name === 'harbor') await writeTrialTask(harborTask, { ...quickTask, backend: name });
  const evidence = await runFlood(options);
  figures(evidence);
  // The first places go to whoever comes, and are most of them where few come back.
  const isJudged = comeBack >= 3 * (options.maxConcurrent + options.maxQueueDepth);
  if (!isJudged) say('  too few come back: the shares are not judged');
  const own = {
    ...limits,
    startTolerance: isJudged ? 0.1 : null,
    endTolerance: isJudged && comeBack === options.submissions ? 0.1 : null,
  };
  const found = judgeFlood(evidence, own);
  for (const problem of found) say(`  PROBLEM ${problem}`);
  problems.push(...found.map((problem) => `${name}: ${problem}`));
}

if (wanted.includes('controls'))
  for (const [variant, sign] of [
    ['loose', / reservations of /],
    ['unweighted', /^tenant c had .* of starts/],
  ] as const) {
    const small = {
      ...common,
      submissions: 400,
      overMs: 400,
      maxConcurrent: 16,
      maxQueueDepth: 64,
    };
    const evidence = await runFlood({
      ...{ ...small, backendFlags: ['--backend', 'null'], leastReads: 10, variant },
      metadata: { null: { duration_ms: 200 } },
    });
    const isFound = judgeFlood(evidence, { ...limits, times: null }).some((one) => sign.test(one));
    say(`control, ${variant}: ${isFound ? 'found' : 'NOT FOUND'}`);
    if (!isFound) problems.push(`control ${variant}`);
  }

if (wanted.includes('kv')) {
  const swing = await swingKv();
  const { shrunkAfterMs, shrunkTo, leastCap, regrownAfterMs, overruns } = swing;
  say(
    `KV: 0.95 full: fewer after ${shrunkAfterMs.toFixed(0)} ms (${shrunkTo} of 32, least ${leastCap}); all again ${regrownAfterMs?.toFixed(0) ?? 'never'} ms after 0.3`,
  );
  if (times !== null && shrunkAfterMs > 2_000) problems.push('KV: it took longer than 2 s');
  if (regrownAfterMs === null) problems.push('KV: the cap did not grow back');
  if (overruns > 0) problems.push(`KV: ${overruns} times more ran than might`);
}

await rm(harborTask, { recursive: true, force: true });
say(problems.length === 0 ? 'the flood was held' : `FAILED: ${problems.length} problems`);
for (const problem of problems) say(`  ${problem}`);
if (problems.length > 0) process.exitCode = 1;
