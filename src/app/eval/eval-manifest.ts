/**
 * `manifest.json`: what an evaluation was begun with. It goes on only with the same of everything that decides a result; what only decides how fast it goes,
 * and the threshold, may change. Digests stand for what may hold a secret.
 */
import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { z } from 'zod';
import type { EvalConfig } from '../../config/eval/read-eval-config.ts';
import { canonicalJson } from '../../core/canonical-json.ts';
import { RolloutError } from '../../core/errors.ts';
import type { Dataset } from './dataset.ts';
import type { TaskDigests } from './task-digests.ts';

const manifestSchema = z.object({
  schema_version: z.literal(1),
  name: z.string(),
  created_at: z.string(),
  /** For people. */
  dataset: z.object({ file: z.string(), mode: z.string(), rows: z.int(), runs: z.int() }),
  /** By group: equal texts for equal settings. */
  pins: z.record(z.string(), z.string()),
  /** Digests of local folders. */
  tasks: z.record(z.string(), z.string()).default({}),
});

const maxListed = 5;

export type EvalManifest = z.output<typeof manifestSchema>;

export function makeManifest(
  config: EvalConfig,
  dataset: Dataset,
  options: {
    readonly sourceSha256: string;
    readonly tasks: TaskDigests;
    readonly now: Date;
  },
): EvalManifest {
  const rows = Array.from({ length: dataset.size }, (_, index) => dataset.datasetRow(index));
  return {
    schema_version: 1,
    name: config.name,
    created_at: options.now.toISOString(),
    dataset: {
      ...{ file: basename(dataset.file), mode: dataset.mode },
      ...{ rows: dataset.size, runs: config.repeats },
    },
    pins: {
      model: digest([config.modelUrl, config.modelName]),
      dataset: digest([dataset.sha256, dataset.mode]),
      rows: digest(rows),
      n: String(config.repeats),
      timeouts: canonicalJson([
        config.agentTimeoutSec,
        config.graderTimeoutSec,
        config.itemTimeoutMs / 1000,
      ]),
      server: digest([config.serverUrl, withoutPace(config.serveDocument)]),
      env: digest(config.variables),
      secrets: canonicalJson([...config.requiredSecrets].sort()),
      source: options.sourceSha256,
    },
    tasks: options.tasks,
  };
}

/**
 * What is to stand in the file from now on: a task that was not there before, and whose rows have failed therefore, is pinned from now on. JOB_CONFLICT
 * names the groups and the tasks that changed; JOB_UNREADABLE for what is no manifest.
 */
export function checkManifest(found: unknown, wanted: EvalManifest, dir: string): EvalManifest {
  const before = manifestSchema.safeParse(found);
  if (!before.success)
    throw new RolloutError('JOB_UNREADABLE', `${dir} holds no manifest of an evaluation`, {
      phase: 'queue',
      field: 'manifest.json',
      remedy: 'Give --name NAME, or begin anew: --fresh.',
    });
  const { pins, tasks } = before.data;
  const changed = Object.keys(wanted.pins).filter((group) => pins[group] !== wanted.pins[group]);
  // With other rows, other tasks: that is one change.
  const others = changed.length > 0 ? [] : changedTasks(tasks, wanted.tasks);
  if (changed.length + others.length === 0) return { ...before.data, tasks: wanted.tasks };
  throw new RolloutError(
    'JOB_CONFLICT',
    `${dir} was begun with another configuration; changed: ${[...changed, ...others].join(', ')}`,
    {
      phase: 'queue',
      field: changed[0] ?? 'tasks',
      remedy: 'Take the changes back, give --name NAME, or begin anew: --fresh.',
    },
  );
}

function changedTasks(before: TaskDigests, now: TaskDigests): readonly string[] {
  const changed = Object.keys(before).filter((folder) => before[folder] !== now[folder]);
  const shown = changed
    .slice(0, maxListed)
    .map((folder) => (folder in now ? `the content of ${folder}` : `${folder}, which is gone`));
  const more = changed.length - shown.length;
  return more > 0 ? [...shown, `and ${more} more`] : shown;
}

/** How much runs at once, and what is logged, decides no result. */
function withoutPace(document: Readonly<Record<string, unknown>>): unknown {
  const paces = new Set(['admission', 'log', 'telemetry', 'retention', 'shutdown', 'limits']);
  return Object.fromEntries(Object.entries(document).filter(([table]) => !paces.has(table)));
}

function digest(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex');
}
