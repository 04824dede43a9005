import { RolloutError } from '../../core/errors.ts';
import {
  datasetFileRowsSchema,
  datasetTagRowsSchema,
  datasetTaskRowsSchema,
  datasetVersionListSchema,
  datasetVersionRowsSchema,
  legacyDatasetSchema,
  taskVersionSchema,
  type DatasetFileRow,
  type DatasetVersion,
  type RegistryDataset,
  type TaskVersion,
} from '../../wire/harbor/registry.ts';
import type { z } from 'zod';
import { unavailable, type HttpRequests } from './http-requests.ts';
import type { PackageReference } from './package-reference.ts';
import type { RegistrySettings } from './registry-settings.ts';

/** A task of a package dataset. */
export interface DatasetMember {
  readonly org: string;
  readonly name: string;
  /** `sha256:<hex>`. */
  readonly digest: string;
}

export interface DatasetMembers {
  readonly members: readonly DatasetMember[];
  /** How many more there are that the key may not see. */
  readonly hidden: number;
}

const bucket = 'packages';
const pageRows = 1000;
const recordTimeoutMs = 5000;

/**
 * Reads Harbor's package registry (PostgREST and its storage service) with the publishable key. Every method throws
 * REGISTRY_UNAVAILABLE; messages never hold the address or the key.
 */
export class RegistryClient {
  readonly #settings: RegistrySettings;
  readonly #http: HttpRequests;

  constructor(settings: RegistrySettings, http: HttpRequests) {
    this.#settings = settings;
    this.#http = http;
  }

  /** Throws PACKAGE_NOT_FOUND. */
  async taskVersion(reference: PackageReference, signal: AbortSignal): Promise<TaskVersion> {
    const found = await this.#call(
      'resolve_task_version',
      { p_org: reference.org, p_name: reference.name, p_ref: reference.ref.text },
      taskVersionSchema,
      signal,
    );
    if (found !== null) return found;
    throw notFound('PACKAGE_NOT_FOUND', 'package', reference);
  }

  /** Throws DATASET_NOT_FOUND. */
  async datasetVersion(reference: PackageReference, signal: AbortSignal): Promise<DatasetVersion> {
    const { org, name, ref } = reference;
    const owner = {
      'package.name': `eq.${name}`,
      'package.type': 'eq.dataset',
      'package.org.name': `eq.${org}`,
    };
    const versions =
      ref.kind === 'tag'
        ? await this.#rows(
            'dataset_version_tag',
            {
              select: `tag,dataset_version:dataset_version_id(*),${ownerColumns}`,
              tag: `eq.${ref.text}`,
              ...owner,
            },
            datasetTagRowsSchema,
            signal,
          ).then((rows) => rows.map((row) => row.dataset_version))
        : await this.#rows(
            'dataset_version',
            {
              select: `*,${ownerColumns}`,
              ...(ref.kind === 'revision'
                ? { revision: `eq.${ref.text}` }
                : { content_hash: `in.("${ref.text}","${ref.text.slice('sha256:'.length)}")` }),
              ...owner,
            },
            datasetVersionRowsSchema,
            signal,
          );
    const [version] = versions;
    if (version === undefined) throw notFound('DATASET_NOT_FOUND', 'dataset', reference);
    return version;
  }

  async datasetMembers(version: DatasetVersion, signal: AbortSignal): Promise<DatasetMembers> {
    const rows = await this.#rows(
      'dataset_version_task',
      {
        select:
          'task_version_id,task_version:task_version_id(content_hash,package:package_id(name,org:org_id(name)))',
        dataset_version_id: `eq.${version.id}`,
        order: 'task_version_id',
      },
      datasetTaskRowsSchema,
      signal,
    );
    const members: DatasetMember[] = [];
    for (const { task_version: task } of rows)
      if (task !== null)
        members.push({
          org: task.package.org.name,
          name: task.package.name,
          digest: task.content_hash,
        });
    return { members, hidden: rows.length - members.length };
  }

  datasetFiles(version: DatasetVersion, signal: AbortSignal): Promise<readonly DatasetFileRow[]> {
    return this.#rows(
      'dataset_version_file',
      {
        select: 'path,storage_path,content_hash,size_bytes',
        dataset_version_id: `eq.${version.id}`,
        order: 'path',
      },
      datasetFileRowsSchema,
      signal,
    );
  }

  /** Versions of a dataset that has no organisation; empty when it does not exist. */
  async legacyVersions(name: string, signal: AbortSignal): Promise<readonly string[]> {
    const rows = await this.#rows(
      'dataset',
      { select: 'version', name: `eq.${name}`, order: 'version' },
      datasetVersionListSchema,
      signal,
    );
    return [...new Set(rows.map((row) => row.version))];
  }

  /** null when there is no such version. */
  async legacyDataset(
    name: string,
    version: string,
    signal: AbortSignal,
  ): Promise<RegistryDataset | null> {
    const arguments_ = { p_name: name, p_version: version };
    return this.#call('get_dataset', arguments_, legacyDatasetSchema.nullable(), signal);
  }

  /** An object of the storage; `consume` as for HttpRequests.download. */
  download<T>(
    path: string,
    signal: AbortSignal,
    consume: (chunks: AsyncIterable<Uint8Array>, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const parts = path.split('/');
    if (parts.some((part) => part === '' || part === '.' || part === '..'))
      throw unavailable('the registry names an object that cannot exist', false);
    const object = parts.map(encodeURIComponent).join('/');
    return this.#http.download(
      {
        url: `${this.#settings.baseUrl}/storage/v1/object/${bucket}/${object}`,
        headers: this.#headers(),
        what: 'download from the registry',
        signal,
      },
      consume,
    );
  }

  /** Counts a download at the registry. Best effort: never throws. */
  async recordDownload(
    kind: 'task_version' | 'dataset_version',
    id: string | number,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#http.tell(
      {
        url: `${this.#settings.baseUrl}/rest/v1/${kind}_download`,
        method: 'POST',
        headers: { ...this.#jsonHeaders(), prefer: 'return=minimal' },
        body: JSON.stringify({ [`${kind}_id`]: id }),
        what: 'download record',
        signal,
      },
      recordTimeoutMs,
    );
  }

  #call<T extends z.ZodType>(
    procedure: string,
    body: Readonly<Record<string, string>>,
    schema: T,
    signal: AbortSignal,
  ): Promise<z.output<T>> {
    return this.#http.json(
      {
        url: `${this.#settings.baseUrl}/rest/v1/rpc/${procedure}`,
        method: 'POST',
        headers: this.#jsonHeaders(),
        body: JSON.stringify(body),
        what: `registry call ${procedure}`,
        signal,
      },
      schema,
    );
  }

  /** All rows of a query, page by page. */
  async #rows<Row>(
    table: string,
    query: Readonly<Record<string, string>>,
    schema: z.ZodType<Row[]>,
    signal: AbortSignal,
  ): Promise<Row[]> {
    const rows: Row[] = [];
    for (;;) {
      const page = { ...query, offset: String(rows.length), limit: String(pageRows) };
      const request = {
        url: `${this.#settings.baseUrl}/rest/v1/${table}?${new URLSearchParams(page).toString()}`,
        headers: this.#headers(),
        what: `registry table ${table}`,
        signal,
      };
      const found = await this.#http.json(request, schema);
      rows.push(...found);
      if (found.length < pageRows) return rows;
    }
  }

  #headers(): Readonly<Record<string, string>> {
    return { apikey: this.#settings.key };
  }

  #jsonHeaders(): Readonly<Record<string, string>> {
    return { ...this.#headers(), 'content-type': 'application/json' };
  }
}

const ownerColumns = 'package:package_id!inner(*,org:org_id!inner(name))';

function notFound(
  code: 'PACKAGE_NOT_FOUND' | 'DATASET_NOT_FOUND',
  noun: string,
  { org, name, ref }: PackageReference,
): RolloutError {
  return new RolloutError(code, `the registry has no ${noun} ${org}/${name}@${ref.text}`, {
    phase: 'resolve',
    field: 'ref',
    remedy: 'Check the name and the tag, revision or digest.',
  });
}
