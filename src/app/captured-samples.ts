/** The work behind `slipway sessions samples`: the captured calls of a rollout as samples. */
import { resolve } from 'node:path';
import { stat } from 'node:fs/promises';
import { boundary, RolloutError } from '../core/errors.ts';
import { forestOfCalls } from '../gateway/capture/captured-forest.ts';
import { readCalls } from '../gateway/capture/read-calls.ts';
import { assembleSamples } from '../sessions/samples/assemble.ts';
import { everyBranch, withoutRetries } from '../sessions/samples/branches.ts';
import { sampleLines } from '../sessions/samples/sample-lines.ts';
import { readSpill } from '../trajectory/spill.ts';

export interface CapturedSamplesOptions {
  readonly reward: number | null;
  readonly maxTokens: number | null;
  readonly trainsSummaries: boolean;
  readonly keepsRetries: boolean;
}

/** Lines of NDJSON with their line breaks. TRAJECTORY_INVALID for a file that is no capture. */
export async function capturedSamples(
  file: string,
  options: CapturedSamplesOptions,
): Promise<Iterable<string>> {
  const { reward, maxTokens, trainsSummaries, keepsRetries } = options;
  const captured = resolve(file);
  const found = await stat(captured).catch(() => null);
  if (found?.isFile() !== true) throw noCapture(file, 'there is no such file');
  return await boundary(
    { code: 'TRAJECTORY_INVALID', phase: 'config', what: `reading ${file}` },
    async () => {
      const rolloutId = await rolloutOf(captured, file);
      const { forest, callsWithoutIds, replay } = await forestOfCalls(readCalls(captured));
      const pick = keepsRetries ? everyBranch : withoutRetries;
      const samples = assembleSamples(forest, { maxTokens, trainsSummaries, pick });
      return sampleLines(forest, samples, { rolloutId, reward, callsWithoutIds, replay });
    },
  );
}

/** Its head says so. */
async function rolloutOf(captured: string, file: string): Promise<string> {
  for await (const line of readSpill(captured)) {
    if ('slipway_spill' in line && line.head.agent.name === 'model-calls')
      return line.head.sessionId;
    break;
  }
  throw noCapture(file, 'the file holds no captured calls');
}

function noCapture(file: string, message: string): RolloutError {
  return new RolloutError('TRAJECTORY_INVALID', message, {
    phase: 'config',
    field: file,
    remedy: 'Name a model-calls.steps.ndjson of the archive of a rollout.',
  });
}
