/** Fetches what the server keeps of a finished rollout into the folder of the evaluation. */
import { readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import type { Clock } from '../../core/clock.ts';
import { makeFolder } from '../../core/make-folder.ts';
import type { RolloutDetailDocument } from '../../wire/api/rollout.ts';
import { downloadRollout } from '../download-rollout.ts';
import type { ServerClient } from '../server-client.ts';
import type { EvalFolder } from './eval-folder.ts';
import type { KeptEvent } from './eval-events.ts';

export interface CollectedItem {
  readonly rowIndex: number;
  readonly runIndex: number;
  readonly rolloutId: string;
}

/** Where rollouts are kept: a server, or the folder of one that is gone. */
export interface KeptRollouts extends Pick<ServerClient, 'files' | 'download'> {
  rollout(id: string, signal: AbortSignal): Promise<KeptRollout>;
}

type OutcomeDocument = NonNullable<RolloutDetailDocument['outcome']>;

export interface KeptRollout {
  /** null = it is not over, or nothing says how it ended. */
  readonly outcome: Pick<OutcomeDocument, 'cause' | 'verdict'> | null;
  /** What is still done for it; null = nothing. */
  readonly stage: string | null;
  /** Nobody is there who could write more. */
  readonly isFinal?: boolean;
}

export type Collected = Pick<KeptEvent, 'trajectory_filename' | 'tokens' | 'cause' | 'verdict'>;

/** The archive is written after the last callback: it is waited for that long. */
const archiveMs = 30_000;
const lookMs = 100;

const totals = z.object({
  final_metrics: z.object({
    total_prompt_tokens: z.int().nullish(),
    total_completion_tokens: z.int().nullish(),
  }),
});

export async function collectItem(
  { rowIndex, runIndex, rolloutId }: CollectedItem,
  parts: {
    readonly client: KeptRollouts;
    readonly folder: EvalFolder;
    readonly clock: Clock;
    readonly signal: AbortSignal;
  },
): Promise<Collected> {
  const { client, folder, signal } = parts;
  const outcome = await archived(rolloutId, parts);
  const name = `row_${rowIndex}_run_${runIndex}`;
  const draft = folder.path('.partial', name);
  await rm(draft, { recursive: true, force: true });
  const files = await downloadRollout(
    {
      id: rolloutId,
      dir: draft,
      only: [],
      signal,
      onFile: () => undefined,
    },
    client,
  );
  const found = { cause: outcome?.cause ?? null, verdict: outcome?.verdict?.rewards ?? null };
  if (files.length === 0) return { ...found, trajectory_filename: null, tokens: null };
  const has = (path: string): boolean => files.some((file) => file.path === path);
  let tokens: number | null = null;
  let trajectory: string | null = null;
  if (has('trajectory.json')) {
    trajectory = `${name}.json`;
    tokens = tokensOf(await readFile(join(draft, 'trajectory.json'), 'utf8'));
    await move(join(draft, 'trajectory.json'), folder.path('trajectories', trajectory));
  }
  await rm(folder.path('artifacts', name), { recursive: true, force: true });
  await move(draft, folder.path('artifacts', name));
  return { ...found, trajectory_filename: trajectory, tokens };
}

/** Its outcome when nothing more is written of it; null = it does not come to that, or the server is none of ours. */
async function archived(
  rolloutId: string,
  { client, clock, signal }: Parameters<typeof collectItem>[1],
): Promise<KeptRollout['outcome']> {
  const end = clock.monotonicMs() + archiveMs;
  for (;;) {
    const rollout = await client.rollout(rolloutId, signal);
    const isOver = rollout.stage === null && (rollout.outcome !== null || rollout.isFinal === true);
    if (isOver || clock.monotonicMs() > end) return rollout.outcome;
    await clock.sleep(lookMs, signal);
  }
}

async function move(from: string, to: string): Promise<void> {
  await makeFolder(dirname(to));
  await rename(from, to);
}

function tokensOf(text: string): number | null {
  const read = totals.safeParse(JSON.parse(text));
  if (!read.success) return null;
  const { total_prompt_tokens: prompt, total_completion_tokens: completion } =
    read.data.final_metrics;
  return prompt == null && completion == null ? null : (prompt ?? 0) + (completion ?? 0);
}
