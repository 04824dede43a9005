import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { RolloutError } from '../../core/errors.ts';
import type { DatasetEntry } from '../../wire/harbor/dataset-entry.ts';
import type { DatasetFileRow, DatasetVersion } from '../../wire/harbor/registry.ts';
import { taskEntrySchema } from '../../wire/harbor/task-entry.ts';
import { hasEntry, type CacheEntries } from './cache-entries.ts';
import type { DatasetListing, DatasetTask } from './dataset.ts';
import { filterTasks } from './dataset-filters.ts';
import { datasetDigest } from './dataset-digest.ts';
import { unavailable } from './http-requests.ts';
import { unsafe } from './inside-links.ts';
import { isPackagePart, parsePackageReference } from './package-reference.ts';
import { yankWarnings } from './package-tasks.ts';
import type { RegistryClient } from './registry-client.ts';

interface PackageDatasetOptions {
  readonly registry: RegistryClient;
  readonly entries: CacheEntries;
  readonly cacheDir: string;
  readonly maxFileBytes: number;
  readonly signal: AbortSignal;
}

/** A dataset `org/name[@ref]` of the package registry; its tasks are pinned by digest. */
export async function listPackageDataset(
  dataset: DatasetEntry & { readonly name: string },
  options: PackageDatasetOptions,
): Promise<DatasetListing> {
  const { registry, signal } = options;
  const ref = dataset.ref ?? dataset.version;
  const reference = parsePackageReference(ref === null ? dataset.name : `${dataset.name}@${ref}`);
  const label = `${reference.org}/${reference.name}`;
  const version = await registry.datasetVersion(reference, signal);
  const { members, hidden } = await registry.datasetMembers(version, signal);
  if (hidden > 0)
    throw new RolloutError(
      'DATASET_TASKS_UNAVAILABLE',
      `${hidden} of ${members.length + hidden} tasks of dataset ${label} are not accessible`,
      { phase: 'resolve', field: 'name', remedy: 'Ask the owner of the dataset for access.' },
    );
  const tasks = members.map(({ org, name, digest }): DatasetTask => {
    if (!isPackagePart(org) || !isPackagePart(name))
      throw unavailable(`dataset ${label} lists a task whose name cannot exist`, false);
    const { overwrite, download_dir } = dataset;
    const fields = { name: `${org}/${name}`, ref: digest, source: label, overwrite, download_dir };
    return { name: `${org}/${name}`, entry: taskEntrySchema.parse(fields) };
  });
  const entries = filterTasks(tasks, dataset, label);
  const files = await registry.datasetFiles(version, signal);
  const dir = join(
    options.cacheDir,
    'datasets',
    reference.org,
    reference.name,
    version.content_hash.slice('sha256:'.length),
  );
  if (files.length > 0) await fetchFiles({ label, version, files, dir }, options);
  const digest = datasetDigest({
    tasks: members,
    files: files.map(({ path, content_hash }) => ({ path, digest: content_hash })),
  });
  return {
    kind: 'package',
    name: label,
    version: null,
    digest: version.content_hash,
    entries,
    metrics: [],
    filesDir: files.length > 0 ? dir : null,
    entry: { ...dataset, ref: version.content_hash, version: null },
    warnings: [
      ...(reference.ref.kind === 'tag' && reference.ref.text === 'latest'
        ? [`dataset ${label}: the tag latest moves, so another run may get other tasks`]
        : []),
      ...yankWarnings(label, version),
      ...(digest === version.content_hash
        ? []
        : [`dataset ${label}: its list of tasks and files does not have the promised digest`]),
    ],
  };
}

interface DatasetFiles {
  readonly label: string;
  readonly version: DatasetVersion;
  readonly files: readonly DatasetFileRow[];
  readonly dir: string;
}

async function fetchFiles(
  { label, version, files, dir }: DatasetFiles,
  options: PackageDatasetOptions,
): Promise<void> {
  if (await hasEntry(dir)) return;
  const { signal } = options;
  const key = { root: join(options.cacheDir, 'datasets'), key: dir };
  await options.entries.exclusively(key, signal, async (writer) => {
    if (await hasEntry(dir)) return;
    const filled = join(await writer.scratch(), 'files');
    await mkdir(filled);
    for (const file of files) await fetchFile(label, file, filled, options);
    await writer.place(filled, dir);
    await options.registry.recordDownload('dataset_version', version.id, signal);
  });
}

async function fetchFile(
  label: string,
  file: DatasetFileRow,
  dir: string,
  { registry, maxFileBytes, signal }: PackageDatasetOptions,
): Promise<void> {
  const { path } = file;
  if (path === '' || path === '.' || path === '..' || /[/\\\0]/.test(path))
    throw unsafe(`dataset ${label} holds a file outside its folder`);
  const digest = await registry.download(file.storage_path, signal, async (chunks, transfer) => {
    const hash = createHash('sha256');
    const counted = async function* (): AsyncGenerator<Uint8Array> {
      let size = 0;
      for await (const chunk of chunks) {
        size += chunk.length;
        if (size > maxFileBytes) throw unsafe(`${label}: ${path} is larger than allowed`);
        hash.update(chunk);
        yield chunk;
      }
    };
    await pipeline(counted, createWriteStream(join(dir, path)), { signal: transfer });
    return `sha256:${hash.digest('hex')}`;
  });
  if (digest === file.content_hash) return;
  throw new RolloutError(
    'PACKAGE_DIGEST_MISMATCH',
    `${label}: ${path} was downloaded as ${digest}, ${file.content_hash} was promised`,
    { phase: 'resolve' },
  );
}
