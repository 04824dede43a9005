import { constants, type Stats } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { RolloutError, isRolloutError } from '../core/errors.ts';
import type { Environment } from '../environments/environment.ts';
import { applyLogFilters, type LogFilters } from './log-filters.ts';
import { readRewards, type Rewards } from './reward-file.ts';
import { sandboxVerifierDir, testOutputFile } from './run-tests.ts';

const rewardFileNames = ['reward.json', 'reward.txt'] as const;
const maxRewardBytes = 1024 * 1024;

/**
 * Copies `/logs/verifier` to a host folder and answers what could not be a file there: links and devices are left out, so nothing that is
 * read afterwards leads out of the folder. VERIFIER_OUTPUT_UNAVAILABLE when the copy fails.
 */
export async function downloadVerifierOutput(
  environment: Environment,
  to: { readonly dir: string; readonly filters: LogFilters },
  signal: AbortSignal,
): Promise<readonly string[]> {
  try {
    const { skipped } = await environment.downloadDir(sandboxVerifierDir, to.dir, signal);
    await applyLogFilters(to.dir, to.filters, rewardFileNames);
    return skipped;
  } catch (error) {
    if (isRolloutError(error) && error.code !== 'TRANSFER_FAILED') throw error;
    throw new RolloutError(
      'VERIFIER_OUTPUT_UNAVAILABLE',
      `${sandboxVerifierDir} could not be copied out of the sandbox`,
      {
        phase: 'verifier',
        field: sandboxVerifierDir,
        remedy: 'Run the trial again; the cause says what failed.',
        cause: error,
      },
    );
  }
}

/** The verdict in a downloaded folder. Failures are those of `readRewards`, with the end of the test output as detail. */
export async function readVerdict(
  dir: string,
  about: { readonly skipped: readonly string[]; readonly exitCode: number },
): Promise<Rewards> {
  const [json, text] = await Promise.all(
    rewardFileNames.map((name) => readSmallFile(path.join(dir, name))),
  );
  try {
    return readRewards({ json: json ?? null, text: text ?? null });
  } catch (error) {
    if (!isRolloutError(error)) throw error;
    throw await explained(error, dir, about);
  }
}

async function explained(
  error: RolloutError,
  dir: string,
  about: { readonly skipped: readonly string[]; readonly exitCode: number },
): Promise<RolloutError> {
  const links = about.skipped.filter((entry) =>
    rewardFileNames.some((name) => path.posix.basename(entry) === name),
  );
  const output = await readSmallFile(path.join(dir, testOutputFile), true);
  const detail = [
    ...links.map((entry) => `${entry} is a link or a device and was not followed.`),
    `The test script exited with ${about.exitCode}.`,
    ...(output === null || output.trim() === '' ? [] : [`Its output ended with:\n${tail(output)}`]),
  ].join('\n');
  return new RolloutError(error.code, error.message, {
    phase: error.phase,
    detail,
    cause: error.cause,
    ...(error.field !== null && { field: error.field }),
    ...(error.remedy !== null && { remedy: error.remedy }),
  });
}

const tailLines = 20;

function tail(text: string): string {
  return text.trimEnd().split('\n').slice(-tailLines).join('\n');
}

/** null when there is no such regular file. Longer than the limit: its end when asked for, else REWARD_INVALID, as a folder is. */
async function readSmallFile(file: string, isEndEnough = false): Promise<string | null> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(file, flags).catch(() => null);
  if (handle === null) return null;
  try {
    const stats = await handle.stat();
    if (!isEndEnough) refuseUnfit(path.basename(file), stats);
    if (!stats.isFile()) return null;
    const { size } = stats;
    const length = Math.min(size, maxRewardBytes);
    const bytes = Buffer.alloc(length);
    const { bytesRead } = await handle.read(bytes, 0, length, size - length);
    return bytes.toString('utf8', 0, bytesRead);
  } finally {
    await handle.close();
  }
}

function refuseUnfit(name: string, stats: Stats): void {
  const isFolder = stats.isDirectory();
  if (!isFolder && stats.size <= maxRewardBytes) return;
  const message = isFolder ? `${name} is a folder` : `${name} has ${stats.size} bytes`;
  throw new RolloutError('REWARD_INVALID', message, {
    phase: 'verifier',
    field: `${sandboxVerifierDir}/${name}`,
    remedy: `Let it be a file of at most ${maxRewardBytes} bytes.`,
  });
}
