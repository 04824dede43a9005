import { stat } from 'node:fs/promises';
import { rolloutDocuments, type RolloutFacts } from '../archive/rollout-documents.ts';
import { wantsCalls } from '../archive/rollout-trajectory.ts';
import type { ExecutionResult } from '../backends/execution-backend.ts';
import { messageOf } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { sampledCalls, type SampledCall } from '../gateway/capture/read-calls.ts';
import type { KeptFile } from '../wire/rollout/kept-file.ts';
import type { RolloutOutcome } from '../wire/rollout/rollout-outcome.ts';
import type { RolloutRequest } from '../wire/rollout/rollout-request.ts';
import type { SchedulerParts } from './scheduler-parts.ts';

/** What is archived of a rollout: of several results the latest, with what the earlier ones had and it has not. */
export function rolloutFacts(
  rollout: {
    readonly id: string;
    readonly request: RolloutRequest;
    readonly outcome: RolloutOutcome;
    readonly version: string;
  },
  /** Latest first. */
  results: readonly Pick<ExecutionResult, 'sample' | 'diagnostics' | 'trajectory'>[],
): RolloutFacts {
  const { id, request, outcome, version } = rollout;
  const latest = <T>(of: (result: (typeof results)[number]) => T | null): T | null =>
    results.map(of).find((value) => value !== null) ?? null;
  return {
    rolloutId: id,
    label: request.label,
    metadata: request.metadata,
    extraFields: request.extra_fields,
    outcome,
    result: {
      status: outcome.status === 'success' ? 'success' : 'failure',
      sample: latest(({ sample }) => sample),
      diagnostics: latest(({ diagnostics }) => diagnostics),
      trajectory: latest(({ trajectory }) => trajectory),
    },
    report: null,
    version,
  };
}

interface KeptOfRollout {
  readonly files: readonly KeptFile[];
  readonly secrets: readonly string[];
  /** What the gateway has kept of its calls, for a trajectory without token ids. */
  readonly calls?: readonly SampledCall[];
}

/** Whether everything is kept. Never rejects: what cannot be kept is logged. */
export async function archiveRollout(
  facts: RolloutFacts,
  { calls = [], ...kept }: KeptOfRollout,
  { archive, logger }: Pick<SchedulerParts, 'archive' | 'logger'>,
): Promise<boolean> {
  const { rolloutId } = facts;
  try {
    const { documents, warnings } = rolloutDocuments(facts, calls);
    for (const warning of warnings) logger.log('warn', warning, { rolloutId });
    const problems = await archive.save({ rolloutId, documents, ...kept });
    for (const { name, problem } of problems)
      logger.log('warn', 'something was not archived', { rolloutId, name, problem });
    const isRefused = facts.result.trajectory !== null && !('trajectory.json' in documents);
    return problems.length === 0 && !isRefused;
  } catch (error) {
    logger.log('warn', 'the archive failed', { rolloutId, error: messageOf(error) });
    return false;
  }
}

/** null = nobody knows. */
async function capturedFiles(
  rolloutId: string,
  { gateway, logger }: Pick<SchedulerParts, 'gateway' | 'logger'>,
): Promise<readonly KeptFile[] | null> {
  try {
    const file = await gateway.captured(rolloutId);
    return file === null
      ? []
      : [{ name: 'model-calls.steps.ndjson', path: file, mayBeTaken: true }];
  } catch (error) {
    logger.log('warn', 'captured model calls were not found', {
      ...{ rolloutId, error: messageOf(error) },
    });
    return null;
  }
}

/** Of a larger capture the ids stay where they are: the trajectory is put together in memory. */
const mostJoinedBytes = 256 * 1024 * 1024;

async function sampledIn(
  files: readonly KeptFile[],
  { rolloutId, logger }: { readonly rolloutId: string; readonly logger: Logger },
): Promise<readonly SampledCall[]> {
  try {
    const found: SampledCall[] = [];
    for (const { path } of files)
      if ((await stat(path)).size <= mostJoinedBytes) found.push(...(await sampledCalls(path)));
    return found;
  } catch (error) {
    logger.log('warn', 'captured model calls cannot be read', {
      ...{ rolloutId, error: messageOf(error) },
    });
    return [];
  }
}

/** Archives a rollout with its model calls, which the gateway then need not keep any more. Never rejects. */
export async function archiveWithCalls(
  facts: RolloutFacts,
  kept: KeptOfRollout,
  parts: Pick<SchedulerParts, 'archive' | 'gateway' | 'logger'>,
): Promise<boolean> {
  const { rolloutId } = facts;
  const captured = await capturedFiles(rolloutId, parts);
  const found = captured ?? [];
  const calls = wantsCalls(facts) ? await sampledIn(found, { rolloutId, ...parts }) : [];
  const files = [...kept.files, ...found];
  const isSaved = await archiveRollout(facts, { ...kept, files, calls }, parts);
  const isKept = isSaved && captured !== null;
  if (isKept) await forgetCalls(rolloutId, parts);
  return isKept;
}

/** The calls of a rollout whose end is archived already. Never rejects. */
export async function archiveCalls(
  rolloutId: string,
  secrets: readonly string[],
  parts: Pick<SchedulerParts, 'archive' | 'gateway' | 'logger'>,
): Promise<void> {
  const files = await capturedFiles(rolloutId, parts);
  if (files === null) return;
  const problems = await parts.archive
    .save({ rolloutId, documents: {}, files, secrets })
    .then((all) => all.map(({ problem }) => problem))
    .catch((error: unknown) => [messageOf(error)]);
  for (const problem of problems)
    parts.logger.log('warn', 'captured model calls were not archived', { rolloutId, problem });
  if (problems.length === 0) await forgetCalls(rolloutId, parts);
}

/** Never rejects. */
export async function forgetCalls(
  rolloutId: string,
  { gateway, logger }: Pick<SchedulerParts, 'gateway' | 'logger'>,
): Promise<void> {
  await gateway.forget(rolloutId).catch((error: unknown) =>
    logger.log('warn', 'captured model calls could not be removed', {
      ...{ rolloutId, error: messageOf(error) },
    }),
  );
}

export function secretsOf(
  request: Pick<RolloutRequest, 'controller_api_key' | 'llm_api_key'>,
): readonly string[] {
  return [request.controller_api_key, request.llm_api_key].flatMap((key) =>
    key === null || key === '' ? [] : [key],
  );
}
