import { z } from 'zod';
import { laxBoolean, laxInteger, nullable } from './lax.ts';

/** Harbor's older spelling: `registry: {url}` or `registry: {path}` in place of `registry_url` and `registry_path`. */
function liftNestedRegistry(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('registry' in value)) return value;
  const { registry, ...rest } = value;
  if (typeof registry !== 'object' || registry === null) return rest;
  const nested = registry as { readonly url?: unknown; readonly path?: unknown };
  return { registry_url: nested.url, registry_path: nested.path, ...rest };
}

/** A `datasets` entry of a job configuration: which dataset, from where, and which of its tasks. */
export const datasetEntrySchema = z.preprocess(
  liftNestedRegistry,
  z
    .object({
      /** Local folder of task folders; with `repo` a folder inside that repository. */
      path: nullable(z.string()),
      /** With a `/` a package, otherwise a name in a registry. */
      name: nullable(z.string()),
      version: nullable(z.string()),
      /** Of a package: tag, revision or `sha256:…`. */
      ref: nullable(z.string()),
      registry_url: nullable(z.string()),
      /** A registry.json; with `repo` a path inside that repository. */
      registry_path: nullable(z.string()),
      repo: nullable(z.string()),
      overwrite: laxBoolean.default(false),
      download_dir: nullable(z.string()),
      /** Globs in which `*` also matches `/`. */
      task_names: nullable(z.array(z.string())),
      exclude_task_names: nullable(z.array(z.string())),
      n_tasks: nullable(laxInteger),
    })
    .check(({ value, issues }) => {
      const problem = datasetEntryProblem(value);
      if (problem !== null)
        issues.push({ code: 'custom', input: value, path: [problem.field], message: problem.text });
    }),
);

export type DatasetEntry = Readonly<z.output<typeof datasetEntrySchema>>;

function datasetEntryProblem(
  entry: Pick<DatasetEntry, 'path' | 'name' | 'version' | 'ref' | 'repo' | 'n_tasks'>,
): { readonly field: string; readonly text: string } | null {
  if (entry.path === null && entry.name === null && entry.repo === null)
    return { field: 'name', text: 'one of path, name and repo is required' };
  if (entry.path !== null && entry.name !== null && entry.repo === null)
    return { field: 'name', text: 'path and name exclude each other' };
  if (entry.version !== null && entry.ref !== null)
    return { field: 'ref', text: 'version and ref exclude each other' };
  if (entry.n_tasks !== null && entry.n_tasks < 1)
    return { field: 'n_tasks', text: 'n_tasks must be at least 1' };
  return null;
}
