/** Whole trials through the command line, timed by what `result.json` says: from the trial's start to its end, sandbox removed. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { command } from './commands.ts';

/** A task whose agent and verifier take no time to speak of: what a trial of it takes is overhead. */
export async function writeTrivialTask(dir: string, image: string): Promise<void> {
  for (const folder of ['environment', 'solution', 'tests'])
    await mkdir(path.join(dir, folder), { recursive: true });
  await writeFile(path.join(dir, 'task.toml'), 'schema_version = "1.4"\n');
  await writeFile(path.join(dir, 'instruction.md'), 'Write done into /done.\n');
  await writeFile(
    path.join(dir, 'environment/Dockerfile'),
    `FROM ${image}\nRUN mkdir /app\nWORKDIR /app\n`,
  );
  await writeFile(path.join(dir, 'solution/solve.sh'), '#!/bin/bash\necho done > /done\n');
  await writeFile(
    path.join(dir, 'tests/test.sh'),
    '#!/bin/bash\n[ "$(cat /done)" = done ] && echo 1 > /logs/verifier/reward.txt\n',
  );
}

/** Times in ms of `count` trials run one after the other. */
export async function trialTimes(options: {
  readonly slipway: string;
  readonly taskDir: string;
  readonly jobsDir: string;
  readonly stateDir: string;
  readonly environment: 'local' | 'docker';
  readonly jobName: string;
  readonly count: number;
}): Promise<number[]> {
  const { slipway, taskDir, jobsDir, environment, jobName, count } = options;
  await command(
    process.execPath,
    [
      ...[slipway, 'run', '--quiet', '--yes', '-p', taskDir, '-a', 'oracle', '-e', environment],
      ...['-k', String(count), '-n', '1', '-o', jobsDir, '--job-name', jobName],
    ],
    { SLIPWAY_STATE_DIR: options.stateDir },
  );
  const spans = await trialSpans(path.join(jobsDir, jobName));
  return spans.map(({ from, to }) => to - from);
}

/** When each trial of a finished job began and ended, in ms of the epoch; every one of them must have its reward. */
export async function trialSpans(
  jobDir: string,
): Promise<readonly { readonly from: number; readonly to: number }[]> {
  const spans: { readonly from: number; readonly to: number }[] = [];
  for (const entry of await readdir(jobDir, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    const result = JSON.parse(
      await readFile(path.join(jobDir, entry.name, 'result.json'), 'utf8'),
    ) as {
      started_at: string;
      finished_at: string;
      verifier_result: { rewards: { reward: number } } | null;
    };
    if (result.verifier_result?.rewards.reward !== 1)
      throw new Error(`${path.basename(jobDir)}/${entry.name} did not get its reward`);
    spans.push({ from: Date.parse(result.started_at), to: Date.parse(result.finished_at) });
  }
  return spans;
}
