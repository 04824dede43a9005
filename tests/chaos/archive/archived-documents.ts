/** Documents on their whole way: the trial's folder → what the backend reads → the rollout's documents → the archive's file. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { FileRolloutArchive } from '../../../src/archive/file-archive.ts';
import { rolloutDocuments } from '../../../src/archive/rollout-documents.ts';
import { trialOutput } from '../../../src/backends/native/trial-output.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { AtifMaker, type Json } from './atif-documents.ts';
import { differences, unexplained, type Expected } from './compare-documents.ts';

export interface ArchivedDocument {
  readonly seed: number;
  readonly document: Json;
  readonly kept: Json;
  readonly expected: Expected;
  readonly problems: readonly string[];
}

/** One document per seed; every other one with a report of a controller. */
export async function archiveDocuments(
  seeds: Iterable<number>,
): Promise<readonly ArchivedDocument[]> {
  await using stack = new AsyncDisposableStack();
  const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-archived-'));
  stack.defer(() => rm(root, { recursive: true, force: true }));
  const archive = new FileRolloutArchive({ dir: path.join(root, 'archive'), logger: silentLogger });
  const all: ArchivedDocument[] = [];
  for (const seed of seeds) {
    const maker = new AtifMaker(seed);
    const document = maker.document();
    const agents = (document['steps'] as readonly Json[]).filter(
      ({ source }) => source === 'agent',
    ).length;
    const report = seed % 2 === 0 ? null : maker.report(maker.chance(0.8) ? agents : agents + 1);
    const rolloutId = `r-${seed}`;
    const dir = path.join(root, rolloutId);
    await mkdir(path.join(dir, 'agent'), { recursive: true });
    await writeFile(path.join(dir, 'agent', 'trajectory.json'), JSON.stringify(document));
    const { trajectory, problems } = await trialOutput(dir);
    const sample = {
      ...{ messages: [], trajectoryMessages: null, label: 'a label', reward: 1 },
      ...{ isRemoved: false, metrics: { input_tokens: 5 }, extraFields: {} },
    };
    const { documents, warnings } = rolloutDocuments({
      ...{ rolloutId, label: 'a label', metadata: { row: 1 }, extraFields: null, version: '1' },
      outcome: {
        ...{ status: 'success', reward: 1, errMessage: null, errCategory: null },
        ...{ stage: 'done', cause: null, trainable: true, retryable: false, verdict: null },
      },
      result: { status: 'success', sample, diagnostics: { phase: 'verification' }, trajectory },
      report,
    });
    const failed = await archive.save({ rolloutId, documents, files: [], secrets: [] });
    const kept = ((await archive.document(rolloutId, 'trajectory.json')) ?? {}) as Json;
    const expected = { rolloutId, report };
    all.push({
      ...{ seed, document, kept, expected },
      problems: [
        ...[...problems, ...warnings, ...failed.map(({ problem }) => problem)],
        ...judgeDocument(document, kept, expected),
      ],
    });
    await rm(dir, { recursive: true });
    await archive.remove(rolloutId);
  }
  return all;
}

/** One line per thing that is wrong with what was kept. */
export function judgeDocument(document: Json, kept: Json, expected: Expected): readonly string[] {
  return [...unexplained(document, kept, expected), ...identityProblems(document, kept)];
}

/** What the archive put in the place of something is beside it; what was there of `extra.osmosis` stays, unless we know better. */
function identityProblems(document: Json, kept: Json): readonly string[] {
  const before = ((document['extra'] as Json | null | undefined)?.['osmosis'] ?? {}) as Json;
  const osmosis = ((kept['extra'] as Json | undefined)?.['osmosis'] ?? {}) as Json;
  const wanted: Json = {
    ...{ before: before['before'], reward: 1, label: 'a label' },
    ...{ sample_metrics: { input_tokens: 5 }, request_metadata: { row: 1 } },
    result_extra_fields: { phase: 'verification' },
    native_session_id: document['session_id'] ?? undefined,
    native_trajectory_id: document['trajectory_id'] ?? undefined,
  };
  return Object.entries(wanted).flatMap(([key, value]) =>
    differences(value, osmosis[key]).map(({ at }) => `extra.osmosis.${key}${at} is not kept`),
  );
}
