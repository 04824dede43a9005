/**
 * `npm run learn`: a small policy learns by reinforcement through the whole of Slipway: an engine that serves it, a rollout server, the collector with oversampling, and weight
 * updates by pause, update, resume. Then the controls: with masks one token late nothing is learnt, with log-probabilities one token late nothing is even begun.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { OffPolicyError } from './grpo.ts';
import { plotSvg, sparkline, type Curve } from './plot.ts';
import type { Mistake } from './shifted-samples.ts';
import { startStack } from './stack.ts';
import { train, type LearningMode, type TrainOptions } from './train.ts';

const size = { groupSize: 8, batchGroups: 16, rate: 2, maxUpdates: 60 };
const goal = 0.9;
const begin = 0.2;
/** More than this is no proof that wrong masks are noticed. */
const controlLimit = 0.4;
const limitMs = 5 * 60_000;

interface Verdict {
  readonly name: string;
  readonly goal: string;
  readonly measured: string;
  readonly isMet: boolean;
  readonly curve: Curve | null;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: '1' },
      out: { type: 'string', default: 'jobs' },
      mode: { type: 'string', default: 'both' },
    },
  });
  const seed = Number(values.seed);
  const modes = (['synchronous', 'asynchronous'] as const).filter((mode) =>
    [mode, 'both'].includes(values.mode),
  );
  if (modes.length === 0) {
    console.error('--mode: expected synchronous, asynchronous or both');
    return 2;
  }
  const verdicts: Verdict[] = [];
  for (const mode of modes) verdicts.push(await learns(mode, seed));
  verdicts.push(await control(seed, 'masks'), await control(seed, 'logprobs'));
  const curves = verdicts.flatMap(({ curve }) => (curve === null ? [] : [curve]));
  const file = path.join(values.out, 'learn.svg');
  await mkdir(values.out, { recursive: true });
  await writeFile(file, plotSvg('mean reward by update', curves));
  console.log('');
  for (const verdict of verdicts)
    console.log(
      `${verdict.isMet ? 'met   ' : 'MISSED'}  ${verdict.name.padEnd(20)} ${verdict.measured}  (goal: ${verdict.goal})`,
    );
  console.log(`\nThe curves are in ${file}.`);
  return verdicts.every(({ isMet }) => isMet) ? 0 : 1;
}

async function learns(mode: LearningMode, seed: number): Promise<Verdict> {
  const beganMs = performance.now();
  const rewards = await run(mode, { mode, seed, mistake: null, maxUpdates: size.maxUpdates });
  const [first = 1] = rewards;
  const last = rewards.at(-1) ?? 0;
  const seconds = (performance.now() - beganMs) / 1_000;
  return {
    name: mode,
    goal: `from under ${begin} to over ${goal} within ${limitMs / 60_000} minutes`,
    measured: `${first.toFixed(3)} to ${last.toFixed(3)} in ${rewards.length} updates, ${seconds.toFixed(0)} s`,
    isMet: first < begin && last > goal && seconds * 1_000 <= limitMs,
    curve: { name: mode, values: rewards },
  };
}

async function control(seed: number, mistake: Mistake): Promise<Verdict> {
  const name = `${mistake} one token late`;
  try {
    const rewards = await run(name, { mode: 'synchronous', seed, mistake, maxUpdates: 30 });
    const highest = Math.max(...rewards);
    return {
      name,
      goal:
        mistake === 'masks' ? `stays at ${controlLimit} or below` : 'refused at the first update',
      measured: `at most ${highest.toFixed(3)} in ${rewards.length} updates`,
      isMet: mistake === 'masks' && highest <= controlLimit,
      curve: { name, values: rewards },
    };
  } catch (error) {
    if (!(error instanceof OffPolicyError)) throw error;
    return {
      ...{ name, goal: 'refused at the first update', measured: `refused: ${error.message}` },
      ...{ isMet: mistake === 'logprobs', curve: null },
    };
  }
}

async function run(
  name: string,
  options: Pick<TrainOptions, 'mode' | 'seed' | 'mistake' | 'maxUpdates'>,
): Promise<readonly number[]> {
  console.log(`\n${name}`);
  await using stack = await startStack(options.seed);
  const seen: number[] = [];
  const onUpdate = (
    update: number,
    { meanReward, trainedTokens }: Parameters<Parameters<typeof train>[1]['onUpdate']>[1],
  ) => {
    seen.push(meanReward);
    console.log(
      `update ${String(update).padStart(3)}  reward ${meanReward.toFixed(3)}  ${String(trainedTokens).padStart(5)} tokens  ${sparkline(seen)}`,
    );
  };
  const signal = AbortSignal.timeout(limitMs);
  return await train(stack, { ...size, goal, ...options, onUpdate }, signal);
}

process.exitCode = await main();
