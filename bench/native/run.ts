/** The same trials as one job of `slipway run`, from the start of the first to the end of the last, as their results say it. */
import path from 'node:path';
import { command } from '../environments/commands.ts';
import { trialSpans } from '../environments/trial-times.ts';
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
  const spans = await trialSpans(jobDir);
  const from = Math.min(...spans.map((span) => span.from));
  const to = Math.max(...spans.map((span) => span.to));
  return (to - from) / 1_000;
}

/** What the server sets for its rollouts. */
const asServed = [
  ...['--ak', 'enable_summarize=false', '--ak', 'proactive_summarization_threshold=0'],
];
