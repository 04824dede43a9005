/** Datasets of a registry.json (a file or an address) or of the registry's own list, named without an organisation. */
import { readFile } from 'node:fs/promises';
import { posix, resolve } from 'node:path';
import { isRolloutError, messageOf, RolloutError } from '../../core/errors.ts';
import type { DatasetEntry } from '../../wire/harbor/dataset-entry.ts';
import { registryFileSchema, type RegistryDataset } from '../../wire/harbor/registry.ts';
import { taskEntrySchema } from '../../wire/harbor/task-entry.ts';
import type { DatasetListing, DatasetTask } from './dataset.ts';
import { filterTasks } from './dataset-filters.ts';
import { latestVersion } from './dataset-version.ts';
import { parseGitUrl, percentDecoded } from './git-url.ts';
import type { HttpRequests } from './http-requests.ts';
import type { RegistryClient } from './registry-client.ts';
import { registryNotConfigured } from './registry-settings.ts';
import { invalid } from './task-reference.ts';

export type NamedDataset = DatasetEntry & { readonly name: string };

interface RegistryDatasetOptions {
  readonly baseDir: string;
  readonly http: HttpRequests;
  readonly registry: RegistryClient | null;
  readonly signal: AbortSignal;
}

/** The address that Harbor's configurations name when they mean its package registry. */
const harborDefaultUrl =
  'https://raw.githubusercontent.com/laude-institute/harbor/main/registry.json';

export async function listRegistryDataset(
  dataset: NamedDataset,
  options: RegistryDatasetOptions,
): Promise<DatasetListing> {
  const { registry_path: path, registry_url: url } = dataset;
  if (path !== null) {
    const found = chooseDataset(await readRegistryFile(resolve(options.baseDir, path)), dataset);
    return registryListing(found, dataset, 'local');
  }
  if (url !== null && url !== harborDefaultUrl) {
    const found = chooseDataset(await fetchRegistryFile(url, options), dataset);
    return registryListing(found, dataset, 'remote');
  }
  if (options.registry === null) throw registryNotConfigured();
  const found = await askRegistry(options.registry, dataset, options.signal);
  return registryListing(found, dataset, 'remote');
}

/** The wanted version of the wanted dataset. Throws DATASET_NOT_FOUND. */
export function chooseDataset(
  datasets: readonly RegistryDataset[],
  { name, version }: NamedDataset,
): RegistryDataset {
  const versions = datasets.filter((dataset) => dataset.name === name);
  const wanted = version ?? latestVersion(versions.map((dataset) => dataset.version));
  const found = versions.find((dataset) => dataset.version === wanted);
  if (found !== undefined) return found;
  throw versions.length === 0
    ? datasetNotFound(name, null, [...new Set(datasets.map((dataset) => dataset.name))])
    : datasetNotFound(
        name,
        version,
        versions.map((dataset) => dataset.version),
      );
}

/** Duplicates are listed once. `origin` says whether the document came from this machine: only then may it name folders of it. */
export function registryListing(
  found: RegistryDataset,
  dataset: NamedDataset,
  origin: 'local' | 'remote',
): DatasetListing {
  const tasks = new Map<string, DatasetTask>();
  for (const { git_url, git_commit_id, path } of found.tasks) {
    if (origin === 'remote' && isOnThisMachine(git_url))
      throw invalid(
        'registry_url',
        `dataset ${found.name} of a remote registry names a folder of this machine`,
        'Download the registry and give it by registry_path if you trust it.',
      );
    const { overwrite, download_dir } = dataset;
    const source = found.name;
    const fields = { path, git_url, git_commit_id, source, overwrite, download_dir };
    const task = { name: posix.basename(path), entry: taskEntrySchema.parse(fields) };
    tasks.set(JSON.stringify([git_url, git_commit_id, path]), task);
  }
  return {
    kind: 'registry',
    name: found.name,
    version: found.version,
    digest: null,
    entries: filterTasks([...tasks.values()], dataset, found.name),
    metrics: found.metrics,
    filesDir: null,
    entry: { ...dataset, version: found.version },
    warnings: [],
  };
}

/** An address that git may not use is nowhere: it fails its own task, later. */
function isOnThisMachine(gitUrl: string | null): boolean {
  if (gitUrl === null) return true;
  try {
    return parseGitUrl(gitUrl, 'git_url').transport === 'file';
  } catch (error) {
    if (isRolloutError(error, 'REFERENCE_INVALID')) return false;
    throw error;
  }
}

/** A registry.json as text. Throws CONFIG_INVALID. */
export function parseRegistryFile(text: string, label: string): readonly RegistryDataset[] {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    throw registryFileInvalid(`${label} is not JSON`, error);
  }
  const datasets = registryFileSchema.safeParse(document);
  if (datasets.success) return datasets.data;
  const [issue] = datasets.error.issues;
  throw registryFileInvalid(
    `${label}: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`,
    datasets.error,
  );
}

async function readRegistryFile(file: string): Promise<readonly RegistryDataset[]> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new RolloutError('DATASET_NOT_FOUND', `${file} cannot be read: ${messageOf(error)}`, {
      phase: 'resolve',
      field: 'registry_path',
      cause: error,
    });
  });
  return parseRegistryFile(text, file);
}

async function fetchRegistryFile(
  text: string,
  { http, signal }: RegistryDatasetOptions,
): Promise<readonly RegistryDataset[]> {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw invalid('registry_url', 'the address of a registry begins with https:// or http://');
  const hasLogin = url.username !== '' || url.password !== '';
  const login = `${percentDecoded(url.username) ?? ''}:${percentDecoded(url.password) ?? ''}`;
  url.username = '';
  url.password = '';
  const request = {
    url: url.href,
    headers: hasLogin ? { authorization: `Basic ${Buffer.from(login).toString('base64')}` } : {},
    what: 'registry.json',
    followsRedirects: true,
    signal,
  };
  return http.json(request, registryFileSchema);
}

async function askRegistry(
  registry: RegistryClient,
  { name, version }: NamedDataset,
  signal: AbortSignal,
): Promise<RegistryDataset> {
  const versions = version === null ? await registry.legacyVersions(name, signal) : [version];
  const wanted = latestVersion(versions);
  const found = wanted === null ? null : await registry.legacyDataset(name, wanted, signal);
  if (found !== null) return found;
  throw datasetNotFound(
    name,
    version,
    version === null ? [] : await registry.legacyVersions(name, signal),
  );
}

const exampleCount = 5;

function datasetNotFound(
  name: string,
  version: string | null,
  others: readonly string[],
): RolloutError {
  const examples = others.slice(0, exampleCount).join(', ');
  return new RolloutError(
    'DATASET_NOT_FOUND',
    version === null ? `there is no dataset ${name}` : `dataset ${name} has no version ${version}`,
    {
      phase: 'resolve',
      field: version === null ? 'name' : 'version',
      ...(examples === '' ? {} : { remedy: `There is: ${examples}.` }),
    },
  );
}

function registryFileInvalid(message: string, cause: unknown): RolloutError {
  return new RolloutError('CONFIG_INVALID', message, {
    phase: 'resolve',
    field: 'registry_path',
    cause,
  });
}
