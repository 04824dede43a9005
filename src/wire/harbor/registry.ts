/** The documents of Harbor's registries: registry.json, and the rows and answers of the package registry. */
import { z } from 'zod';
import { laxInteger, nullable } from './lax.ts';

const metricSchema = z.object({
  type: z.string().default('mean'),
  kwargs: z.record(z.string(), z.unknown()).default({}),
});
export type RegistryMetric = z.output<typeof metricSchema>;

const datasetTaskSchema = z.object({
  name: nullable(z.string()),
  git_url: nullable(z.string()),
  git_commit_id: nullable(z.string()),
  path: z.string(),
});

/** A dataset of a registry.json. */
export const registryDatasetSchema = z.object({
  name: z.string(),
  version: z.string(),
  description: z.string().default(''),
  tasks: z.array(datasetTaskSchema),
  metrics: z
    .array(metricSchema)
    .nullish()
    .transform((metrics) => metrics ?? []),
});
export type RegistryDataset = Readonly<z.output<typeof registryDatasetSchema>>;

export const registryFileSchema = z.array(registryDatasetSchema);

/** Answer of the RPC `get_dataset`: metrics are named by `name` there. */
export const legacyDatasetSchema = z
  .object({
    name: z.string(),
    version: z.string(),
    description: nullable(z.string()),
    tasks: z
      .array(datasetTaskSchema)
      .nullish()
      .transform((tasks) => tasks ?? []),
    metrics: z
      .array(z.object({ name: z.string(), kwargs: nullable(z.record(z.string(), z.unknown())) }))
      .nullish()
      .transform((metrics) => metrics ?? []),
  })
  .transform(({ metrics, description, ...dataset }): RegistryDataset => ({
    ...dataset,
    description: description ?? '',
    metrics: metrics.map(({ name, kwargs }) => ({ type: name, kwargs: kwargs ?? {} })),
  }));

export const datasetVersionListSchema = z.array(z.object({ version: z.string() }));

const digestPattern = /^(?:sha256:)?([0-9a-f]{64})$/;

/** A SHA-256, with or without its prefix; read as `sha256:<64 hex>`. */
export const digestSchema = z
  .string()
  .regex(digestPattern)
  .transform((text) => `sha256:${text.slice(-64)}`);

const yankFields = {
  yanked_at: nullable(z.string()),
  yanked_reason: nullable(z.string()),
};

/** Answer of the RPC `resolve_task_version`; null when there is no such version. */
export const taskVersionSchema = z
  .object({
    id: z.union([z.string(), z.number()]),
    archive_path: z.string().min(1),
    content_hash: digestSchema,
    revision: nullable(laxInteger),
    ...yankFields,
  })
  .nullable();
export type TaskVersion = NonNullable<z.output<typeof taskVersionSchema>>;

export const datasetVersionSchema = z.object({
  id: z.union([z.string(), z.number()]),
  content_hash: digestSchema,
  revision: nullable(laxInteger),
  ...yankFields,
});
export type DatasetVersion = z.output<typeof datasetVersionSchema>;

export const datasetVersionRowsSchema = z.array(datasetVersionSchema);
export const datasetTagRowsSchema = z.array(
  z.object({ tag: z.string(), dataset_version: datasetVersionSchema }),
);

/** Edges from a dataset version to its tasks; a task that the reader may not see has no `task_version`. */
export const datasetTaskRowsSchema = z.array(
  z.object({
    task_version_id: z.union([z.string(), z.number()]),
    task_version: nullable(
      z.object({
        content_hash: digestSchema,
        package: z.object({ name: z.string(), org: z.object({ name: z.string() }) }),
      }),
    ),
  }),
);

export const datasetFileRowsSchema = z.array(
  z.object({
    path: z.string(),
    storage_path: z.string().min(1),
    content_hash: digestSchema,
    size_bytes: nullable(laxInteger),
  }),
);
export type DatasetFileRow = z.output<typeof datasetFileRowsSchema>[number];

/** What PostgREST and the storage service answer when they refuse. */
export const registryProblemSchema = z.object({
  code: nullable(z.string()),
  message: nullable(z.string()),
});
