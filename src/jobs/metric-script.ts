/** The metric `uv-script`: rewards go to a script as JSON lines, a JSON object comes back. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { attribute, messageOf, RolloutError } from '../core/errors.ts';
import { LinkedAbort } from '../core/linked-abort.ts';
import type { RewardMap } from './metrics.ts';

const run = promisify(execFile);
const timeoutMs = 300_000;
const outputSchema = z.record(z.string(), z.unknown());

/** Runs `uv run SCRIPT -i rewards.jsonl -o metric.json`. CONFIG_INVALID when uv is missing, the script fails or prints no object. */
export async function computeScriptMetric(
  script: string,
  rewards: readonly (RewardMap | null)[],
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  using limit = new LinkedAbort([signal], { ms: timeoutMs, reason: () => tooSlow(script) });
  const folder = await mkdtemp(join(tmpdir(), 'slipway-metric-'));
  try {
    const input = join(folder, 'rewards.jsonl');
    const output = join(folder, 'metric.json');
    await writeFile(input, rewards.map((map) => `${JSON.stringify(map)}\n`).join(''));
    await run('uv', ['run', script, '-i', input, '-o', output], { signal: limit.signal });
    return outputSchema.parse(JSON.parse(await readFile(output, 'utf8')));
  } catch (error) {
    limit.signal.throwIfAborted();
    throw scriptFailed(script, error);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function tooSlow(script: string): RolloutError {
  return new RolloutError(
    'CONFIG_INVALID',
    `the metric script ${script} ran over ${timeoutMs / 1000} s`,
    {
      phase: 'config',
      field: 'metrics',
      remedy: 'Make the script faster, or leave the metric out.',
    },
  );
}

function scriptFailed(script: string, error: unknown): RolloutError {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT')
    return new RolloutError('CONFIG_INVALID', 'a metric script needs uv, which is not installed', {
      phase: 'config',
      field: 'metrics',
      remedy: 'Install uv or use mean, sum, min or max.',
      cause: error,
    });
  const stderr = (error as { stderr?: string }).stderr ?? '';
  const told = attribute(error, 'CONFIG_INVALID', 'config', `metric script ${script}`);
  if (told.code !== 'CONFIG_INVALID') return told;
  return new RolloutError('CONFIG_INVALID', `the metric script ${script} failed`, {
    phase: 'config',
    field: 'metrics',
    remedy:
      'Correct the script; it reads -i FILE (JSON lines) and writes a JSON object to -o FILE.',
    detail:
      stderr.trim().split('\n').slice(-5).join('\n') || (messageOf(error).split('\n')[0] ?? ''),
    cause: error,
  });
}
