/** The same trials as one job of `slipway run`, from the start of the first to the end of the last, as their results say it. */
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { command } from '../environments/commands.ts';
import { slipway, type Batch } from './batch.ts';

/** Seconds. */
export async function runSeconds(batch: Batch, jobDir: string): Promise<number> {
  const { agent, count, concurrency, taskDir, modelUrl } = batch;
  await command(
    process.execPath,
    [
      ...[slipway, 'run', '--quiet', '--yes', '-p', taskDir, '-a', agent, '-e', 'local'],
      ...(agent === 'oracle' ? [] : ['-m', 'openai/bench', ...asServed]),
      ...['-k', String(count), '-n', String(concurrency)],
      ...['-o', path.dirname(jobDir), '--job-name', path.basename(jobDir)],
    ],
    { OPENAI_BASE_URL: modelUrl, OPENAI_API_KEY: 'bench-key' },
  );
  const times: number[] = [];
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
      throw new Error(`${entry.name} did not get its reward`);
    times.push(Date.parse(result.started_at), Date.parse(result.finished_at));
  }
  return (Math.max(...times) - Math.min(...times)) / 1_000;
}

/** What the server sets for its rollouts. */
const asServed = [
  ...['--ak', 'enable_summarize=false', '--ak', 'proactive_summarization_threshold=0'],
];
