/**
 * Runs terminus-2 on a corpus of hostile text against a real `slipway engine` process, in real sandboxes, and compares what each trial kept with
 * what the engine says it sampled: token by token, log-probabilities by their 64 bits.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { composeApp } from '../../src/app/compose.ts';
import { runJob } from '../../src/app/run-job.ts';
import { never } from '../../src/core/linked-abort.ts';
import type { EngineOpener } from '../../src/engines/engine.ts';
import { jobConfigSchema } from '../../src/wire/harbor/job-config.ts';
import {
  readEngineLog,
  startEngineProcess,
  type EngineLogLine,
} from '../support/engine-process.ts';
import { repositoryDir } from '../support/slipway-cli.ts';
import { markerPattern, turnsOf } from '../support/policies/corpus-policy.ts';

export interface CorpusOptions {
  /** Items that end by themselves after 2 to 30 turns. */
  readonly items: number;
  /** Items that are cut off after their first turn. */
  readonly singleTurnItems: number;
  readonly seed: number;
  readonly concurrency: number;
  /** Stands between the agent and the client of the engine; for controls. */
  readonly spoil?: (open: EngineOpener) => EngineOpener;
  /** Hears of every trial that ended. */
  readonly onTrial?: (ended: number) => void;
}

export interface CorpusReport {
  readonly trials: number;
  readonly calls: number;
  readonly tokens: number;
  readonly nonCanonical: number;
  /** Calls of which some id or number differs between the engine's log and what the trial kept. */
  readonly differing: number;
  /** One line each: differing, lost and repeated calls, trials that did not end as planned. */
  readonly problems: readonly string[];
  /** Every trajectory document. */
  readonly trajectories: readonly string[];
}

/** Calls `look` while the folders still stand. */
export async function runCorpus(
  options: CorpusOptions,
  look: (report: CorpusReport) => Promise<void> = () => Promise.resolve(),
): Promise<CorpusReport> {
  const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-exactness-'));
  try {
    const log = path.join(root, 'engine.ndjson');
    await using engine = await startEngineProcess([
      ...['--policy', path.join(repositoryDir, 'tests/support/policies/corpus-policy.ts')],
      ...['--seed', String(options.seed), '--non-canonical', '0.3', '--log', log],
    ]);
    const run = { ...options, root, apiBase: engine.apiBase };
    const ended = [
      ...(await runItems({ ...run, name: 'many', first: 1, count: options.items, kwargs: {} })),
      ...(await runItems({
        ...run,
        name: 'single',
        first: options.items + 1,
        count: options.singleTurnItems,
        kwargs: { max_turns: 1, suppress_max_turns_warning: true },
      })),
    ];
    const report = await compare(ended, await readEngineLog(log));
    await look(report);
    return report;
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

interface EndedTrial {
  readonly item: number;
  readonly turns: number;
  readonly dir: string;
  readonly rewards: Readonly<Record<string, number>> | null;
  readonly problem: string | null;
}

async function runItems(
  options: CorpusOptions & {
    readonly root: string;
    readonly apiBase: string;
    readonly name: string;
    readonly first: number;
    readonly count: number;
    readonly kwargs: Readonly<Record<string, unknown>>;
  },
): Promise<EndedTrial[]> {
  const { root, first, count, name } = options;
  if (count === 0) return [];
  const items = Array.from({ length: count }, (_, index) => first + index);
  const tasksDir = path.join(root, `tasks-${name}`);
  for (const item of items) await writeTask(path.join(tasksDir, `item-${item}`), item);
  const variables = { ...process.env, SLIPWAY_STATE_DIR: path.join(root, 'state') };
  const ports = await composeApp(variables, root);
  let ended = 0;
  const outcome = await runJob(
    {
      config: jobConfigSchema.parse({
        job_name: name,
        jobs_dir: path.join(root, 'jobs'),
        n_concurrent_trials: options.concurrency,
        environment: { type: 'local' },
        agents: [
          {
            name: 'terminus-2',
            model_name: 'openai/mock',
            kwargs: {
              api_base: options.apiBase,
              collect_rollout_details: true,
              record_terminal_session: false,
              ...options.kwargs,
            },
          },
        ],
        tasks: items.map((item) => ({ path: path.join(tasksDir, `item-${item}`) })),
      }),
      sources: null,
      allowUnsandboxed: false,
      observe: (event) => {
        if (event.type === 'trial:settled') options.onTrial?.((ended += 1));
      },
      note: () => undefined,
      confirmVariables: () => Promise.resolve(true),
      signal: never,
    },
    { ...ports, openEngine: (options.spoil ?? ((open) => open))(ports.openEngine) },
  );
  if (outcome === null) throw new Error('the job was declined');
  return outcome.report.trials.map((trial) => {
    const item = Number(/item-(\d+)/.exec(trial.taskName)?.[1]);
    return {
      item,
      turns: name === 'single' ? 1 : turnsOf(item),
      dir: path.join(outcome.dir, trial.trialName),
      rewards: trial.rewards,
      problem: trial.failure === null ? null : `${trial.failure.code}: ${trial.failure.message}`,
    };
  });
}

async function writeTask(dir: string, item: number): Promise<void> {
  await mkdir(path.join(dir, 'tests'), { recursive: true });
  await mkdir(path.join(dir, 'environment'));
  const toml =
    '[agent]\ntimeout_sec = 600.0\n[environment]\ndocker_image = "debian:bookworm-slim"\n';
  await writeFile(path.join(dir, 'task.toml'), toml);
  await writeFile(path.join(dir, 'instruction.md'), `Say corpus item ${item}, and nothing else.\n`);
  await writeFile(path.join(dir, 'tests/test.sh'), 'echo 1 > /logs/verifier/reward.txt\n');
}

export interface KeptCall {
  readonly prompt_token_ids?: readonly number[] | null;
  readonly completion_token_ids?: readonly number[] | null;
  readonly logprobs?: readonly number[] | null;
}

async function compare(
  trials: readonly EndedTrial[],
  log: readonly EngineLogLine[],
): Promise<CorpusReport> {
  const problems: string[] = [];
  const trajectories: string[] = [];
  const byItem = Map.groupBy(log, ({ text }) => Number(markerPattern.exec(text)?.[1]));
  const strays = log.filter(({ text }) => !markerPattern.test(text)).length;
  if (strays > 0) problems.push(`${strays} calls belong to no item`);
  let differing = 0;
  for (const trial of trials) {
    const sampled = byItem.get(trial.item) ?? [];
    const say = (what: string): void => void problems.push(`item ${trial.item}: ${what}`);
    if (trial.problem !== null) say(trial.problem);
    if (trial.rewards?.['reward'] !== 1) say(`reward ${JSON.stringify(trial.rewards)}`);
    if (sampled.length !== trial.turns)
      say(`the engine was asked ${sampled.length} times, expected ${trial.turns}`);
    const file = path.join(trial.dir, 'agent/trajectory.json');
    trajectories.push(file);
    const kept = { trajectory: await fromTrajectory(file), details: await fromResult(trial.dir) };
    const wrong = new Set<number>();
    for (const [where, calls] of Object.entries(kept)) {
      if (calls.length !== sampled.length)
        say(`${where} holds ${calls.length} calls of ${sampled.length}`);
      for (const [index, line] of sampled.entries()) {
        const difference = differenceOf(line, calls[index] ?? {});
        if (difference === null) continue;
        wrong.add(index);
        say(`${where}, call ${index + 1}: ${difference}`);
      }
    }
    differing += wrong.size;
  }
  return {
    trials: trials.length,
    calls: log.length,
    tokens: log.reduce((sum, line) => sum + line.output_ids.length, 0),
    nonCanonical: log.filter(({ canonical }) => !canonical).length,
    differing,
    problems,
    trajectories,
  };
}

async function fromTrajectory(file: string): Promise<KeptCall[]> {
  const { steps } = JSON.parse(await readFile(file, 'utf8')) as {
    readonly steps: readonly { readonly source: string; readonly metrics?: KeptCall | null }[];
  };
  return steps.filter(({ source }) => source === 'agent').map(({ metrics }) => metrics ?? {});
}

/** `agent_result.rollout_details`: the main conversation is the first entry. */
async function fromResult(dir: string): Promise<KeptCall[]> {
  const { agent_result } = JSON.parse(await readFile(path.join(dir, 'result.json'), 'utf8')) as {
    readonly agent_result: {
      readonly rollout_details:
        | readonly {
            readonly prompt_token_ids?: readonly (readonly number[])[];
            readonly completion_token_ids?: readonly (readonly number[])[];
            readonly logprobs?: readonly (readonly number[])[];
          }[]
        | null;
    } | null;
  };
  const details = agent_result?.rollout_details ?? [];
  return details.flatMap((part) =>
    (part.completion_token_ids ?? []).map((ids, turn) => ({
      prompt_token_ids: part.prompt_token_ids?.[turn] ?? null,
      completion_token_ids: ids,
      logprobs: part.logprobs?.[turn] ?? null,
    })),
  );
}

/** null = the same, id for id and bit for bit. */
export function differenceOf(line: EngineLogLine, kept: KeptCall): string | null {
  const pairs = [
    ['prompt ids', line.prompt_ids, kept.prompt_token_ids],
    ['sampled ids', line.output_ids, kept.completion_token_ids],
    ['log-probabilities', line.logprobs, kept.logprobs],
  ] as const;
  for (const [what, sampled, found] of pairs) {
    if (found === undefined || found === null) return `${what} are missing`;
    if (sampled === null) return `the engine logged no ${what}`;
    if (sampled.length !== found.length)
      return `${found.length} ${what}, the engine has ${sampled.length}`;
    const at = sampled.findIndex((value, index) => !isSameFloat(value, found[index]));
    if (at >= 0) return `${what} differ at ${at}: ${found[at]}, the engine has ${sampled[at]}`;
  }
  return null;
}

/** The same 64 bits: Object.is tells 0 from -0. */
function isSameFloat(left: number, right: number | undefined): boolean {
  return Object.is(left, right);
}
