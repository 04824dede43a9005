/**
 * Runs one terminus-2 trial per seed, each against an engine process of its own that fails as its plan says, and judges how the trial ended: typed,
 * in time, with a reward only where the verifier wrote one, with nothing left on the machine.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { composeApp } from '../../src/app/compose.ts';
import { openSandboxRun, type SandboxRun } from '../../src/app/sandbox-run.ts';
import { never } from '../../src/core/linked-abort.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { loadTask } from '../../src/tasks/load-task.ts';
import { trialConfigSchema } from '../../src/wire/harbor/trial-config.ts';
import type { TrialResult } from '../../src/wire/harbor/trial-result.ts';
import {
  readEngineLog,
  startEngineProcess,
  type EngineProcess,
} from '../support/engine-process.ts';
import { ownLeftovers } from '../support/own-leftovers.ts';
import { repositoryDir } from '../support/slipway-cli.ts';
import { calmPlan, faultPlan, type FaultPlan } from './fault-plan.ts';
import { judge, type Evidence } from './fault-verdict.ts';

export interface SeedReport {
  readonly plan: FaultPlan;
  /** null = nothing went wrong for the trial. */
  readonly code: string | null;
  readonly rewards: Readonly<Record<string, number>> | null;
  readonly turns: number;
  readonly agentMs: number;
  readonly problems: readonly string[];
  /** For judging it again under another light. */
  readonly evidence: Evidence | null;
}

export interface FaultReport {
  /** A trial on which no fault was planted. */
  readonly calm: SeedReport;
  readonly seeds: readonly SeedReport[];
  /** What was left on the machine. */
  readonly left: readonly string[];
}

export interface FaultSeedsOptions {
  readonly firstSeed: number;
  readonly seeds: number;
  readonly concurrency: number;
  readonly onSeed?: (report: SeedReport) => void;
}

/** Far beyond every deadline: a trial that has not ended by then hangs. */
const hangMs = 180_000;

export async function runFaultSeeds(options: FaultSeedsOptions): Promise<FaultReport> {
  const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-faults-'));
  const stateDir = path.join(root, 'state');
  try {
    const ports = await composeApp({ ...process.env, SLIPWAY_STATE_DIR: stateDir }, root);
    const reports: SeedReport[] = [];
    let calm: SeedReport;
    {
      const { environment } = trialConfigSchema.parse({
        task: { path: root },
        environment: { type: 'local' },
      });
      await using run = await openSandboxRun(
        { environment, allowUnsandboxed: false, signal: never, note: () => undefined },
        ports,
      );
      calm = await runSeed(calmPlan, { root, run });
      const queue = Array.from(
        { length: options.seeds },
        (_, at) => options.firstSeed + at,
      ).values();
      const work = async (): Promise<void> => {
        for (const seed of queue) {
          const report = await runSeed(faultPlan(seed), { root, run });
          reports.push(report);
          options.onSeed?.(report);
        }
      };
      await Promise.all(Array.from({ length: options.concurrency }, work));
    }
    return { calm, seeds: reports, left: await ownLeftovers(root, { stateDir, withinMs: 10_000 }) };
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

async function runSeed(
  plan: FaultPlan,
  { root, run }: { readonly root: string; readonly run: SandboxRun },
): Promise<SeedReport> {
  const dir = path.join(root, `seed-${plan.seed}`);
  await writeTask(path.join(dir, 'task'), plan);
  const log = path.join(dir, 'engine.ndjson');
  await writeFile(log, '');
  const start = (port: number): Promise<EngineProcess> =>
    startEngineProcess(
      [
        ...['--policy', path.join(repositoryDir, 'tests/support/policies/answer-policy.ts')],
        ...['--seed', String(plan.seed), '--non-canonical', '0.3', '--log', log],
        ...['--faults', JSON.stringify(plan.rules), '--latency', `constant:${plan.latencyMs}`],
      ],
      { port },
    );
  const engines: EngineProcess[] = [];
  const hasEnded = new AbortController();
  try {
    const first = await start(0);
    engines.push(first);
    const trial = makeTrial(plan, { dir, run, apiBase: first.apiBase });
    const ended = trial.run(never).finally(() => hasEnded.abort());
    const event = disturb(plan, {
      engine: first,
      log,
      ended: hasEnded.signal,
      restart: async () => void engines.push(await start(first.port)),
    });
    const result = await Promise.race([ended, delay(hangMs, null, { ref: false })]);
    if (result === null) {
      await trial.cancel();
      await ended;
      return { ...empty(plan), problems: [`it hung for ${hangMs} ms`] };
    }
    await event;
    const evidence = await gather(trial.dir, { result, log, plan });
    return {
      plan,
      code: result.slipway?.failure?.code ?? null,
      rewards: result.verifier_result?.rewards ?? null,
      turns: evidence.kept.length,
      agentMs: result.slipway?.phase_times.agent_ms ?? 0,
      problems: judge(evidence),
      evidence,
    };
  } catch (error) {
    return { ...empty(plan), problems: [`the harness failed: ${String(error)}`] };
  } finally {
    hasEnded.abort();
    for (const engine of engines) await engine.kill();
    await rm(dir, { recursive: true, force: true });
  }
}

function empty(plan: FaultPlan): SeedReport {
  return { plan, code: null, rewards: null, turns: 0, agentMs: 0, problems: [], evidence: null };
}

function makeTrial(
  plan: FaultPlan,
  options: { readonly dir: string; readonly run: SandboxRun; readonly apiBase: string },
): ReturnType<ReturnType<SandboxRun['trialFactory']>> {
  const taskDir = path.join(options.dir, 'task');
  const config = trialConfigSchema.parse({
    task: { path: taskDir },
    trial_name: `seed-${plan.seed}__Ab3dEf7`,
    trials_dir: path.join(options.dir, 'trials'),
    environment: { type: 'local' },
    agent: {
      name: 'terminus-2',
      model_name: 'openai/mock',
      override_timeout_sec: plan.agentLimitMs / 1000,
      kwargs: {
        api_base: options.apiBase,
        collect_rollout_details: true,
        record_terminal_session: false,
        retry_min_wait_sec: plan.retryWaitSec.min,
        retry_max_wait_sec: plan.retryWaitSec.max,
      },
    },
  });
  return options.run.trialFactory(silentLogger)(
    {
      config,
      taskName: `seed-${plan.seed}`,
      taskId: { path: taskDir },
      source: null,
      load: async (signal) => ({
        task: await loadTask({ dir: taskDir, signal }),
        checksum: 'checksum',
        skills: [],
        taskLock: {
          name: `seed-${plan.seed}`,
          version: null,
          type: 'local',
          digest: 'sha256:0',
          source: null,
          path: taskDir,
          git_url: null,
          git_commit_id: null,
        },
      }),
    },
    { observe: () => undefined, admitAgent: undefined },
  );
}

async function writeTask(dir: string, { isSolved }: FaultPlan): Promise<void> {
  await mkdir(path.join(dir, 'tests'), { recursive: true });
  await mkdir(path.join(dir, 'environment'));
  const toml =
    'artifacts = ["/app/answer"]\n[environment]\ndocker_image = "debian:bookworm-slim"\n';
  await writeFile(path.join(dir, 'task.toml'), toml);
  const word = isSolved ? 'yes' : 'no';
  await writeFile(path.join(dir, 'instruction.md'), `Please write the word ${word} to a file.\n`);
  await writeFile(
    path.join(dir, 'tests/test.sh'),
    'if [ "$(cat /app/answer 2>/dev/null)" = yes ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n',
  );
}

/** Does to the engine what the plan says, once it has answered enough; the trial's end ends the waiting. */
async function disturb(
  plan: FaultPlan,
  options: {
    readonly engine: EngineProcess;
    readonly log: string;
    readonly ended: AbortSignal;
    readonly restart: () => Promise<void>;
  },
): Promise<void> {
  const { engine, log, ended } = options;
  if (plan.event === 'none') return;
  while (!ended.aborted && (await readEngineLog(log)).length < plan.afterRequests) await delay(50);
  if (ended.aborted) return;
  const post = async (route: string, body: object): Promise<void> => {
    await fetch(`${engine.url}${route}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(10_000),
    });
  };
  const away = (): Promise<void> =>
    delay(plan.awayMs, undefined, { signal: ended }).catch(() => undefined);
  if (plan.event === 'killed') {
    await engine.kill();
    await away();
    await options.restart();
  } else if (plan.event === 'aborted') {
    await away();
    await post('/abort_request', { abort_all: true });
  } else {
    await post('/pause_generation', { mode: plan.seed % 3 === 0 ? 'abort' : 'retract' });
    if (plan.event === 'left paused') return;
    if (plan.event === 'updated') await post('/update_weight_version', { new_version: 'second' });
    await away();
    await post('/continue_generation', {});
  }
}

async function gather(
  trialDir: string,
  known: { readonly result: TrialResult; readonly log: string; readonly plan: FaultPlan },
): Promise<Evidence> {
  const textOf = (name: string): Promise<string | null> =>
    readFile(path.join(trialDir, name), 'utf8').catch(() => null);
  const trajectory = await textOf('agent/trajectory.json');
  const steps =
    trajectory === null ? [] : (JSON.parse(trajectory) as { steps: Evidence['kept'] }).steps;
  return {
    result: known.result,
    limitMs: known.plan.agentLimitMs,
    rewardFile: await textOf('verifier/reward.txt'),
    answer: await textOf('artifacts/app/answer'),
    kept: steps.filter(({ source }) => source === 'agent'),
    sampled: await readEngineLog(known.log),
  };
}
