/**
 * A package registry in memory that speaks Harbor's wire format (PostgREST and its storage service) over real HTTP. Tests publish into
 * it, read from it with the real client, and make it fail in chosen ways. It refuses requests without its key.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { inject, send, sendHalf, type Fault } from './registry-fault.ts';
import { query, type Row } from './postgrest-query.ts';
import { publishedDigest, sha256, taskArchive, type Files } from './task-archive.ts';

export interface TaskPackage {
  readonly org: string;
  readonly name: string;
  readonly files: Files;
  readonly tags?: readonly string[];
  /** In place of the archive of `files`. */
  readonly archive?: Buffer;
  /** In place of their digest. */
  readonly digest?: string;
}

export interface DatasetPackage {
  readonly org: string;
  readonly name: string;
  readonly tags?: readonly string[];
  readonly tasks: readonly Row[];
  readonly files?: Files;
  /** Tasks listed that the key may not see. */
  readonly hidden?: number;
}

export class RegistryServer implements AsyncDisposable {
  readonly key = 'sb_publishable_test_key';
  /** `METHOD path?query` of every request, in order. */
  readonly requests: string[] = [];
  readonly downloads: unknown[] = [];
  /** The most requests that were open at once. */
  peak = 0;
  #open = 0;
  readonly #server: Server;
  readonly #objects = new Map<string, Buffer>();
  readonly #tasks: Row[] = [];
  readonly #tags = new Map<string, Row>();
  readonly #tables: Record<string, Row[]> = {
    dataset: [],
    dataset_version: [],
    dataset_version_tag: [],
    dataset_version_task: [],
    dataset_version_file: [],
  };
  readonly #legacy: Row[] = [];
  readonly #faults: { fault: Fault; left: number }[] = [];

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#open += 1;
      this.peak = Math.max(this.peak, this.#open);
      response.once('close', () => (this.#open -= 1));
      this.#answer(request, response).catch((error: unknown) => {
        response.writeHead(500).end(JSON.stringify({ message: String(error) }));
      });
    });
  }

  static async start(): Promise<RegistryServer> {
    const registry = new RegistryServer();
    await new Promise<void>((resolve) => registry.#server.listen(0, '127.0.0.1', resolve));
    return registry;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  fail(fault: Fault): void {
    this.#faults.push({ fault, left: fault.times });
  }

  /** Adds a version; its tags move to it. Answers the row that datasets refer to. */
  async publishTask(task: TaskPackage): Promise<Row> {
    const { org, name } = task;
    const digest = task.digest ?? publishedDigest(task.files);
    const revision = this.#tasks.filter((row) => row['owner'] === `${org}/${name}`).length + 1;
    const archivePath = `tasks/${org}/${name}/${digest.slice('sha256:'.length)}/dist.tar.gz`;
    this.#objects.set(archivePath, task.archive ?? (await taskArchive(task.files)));
    const row = {
      id: `task-version-${this.#tasks.length + 1}`,
      owner: `${org}/${name}`,
      archive_path: archivePath,
      content_hash: digest,
      revision,
      yanked_at: null,
      yanked_reason: null,
      package: { name, org: { name: org } },
    };
    this.#tasks.push(row);
    for (const tag of task.tags ?? ['latest']) this.#tags.set(`${org}/${name}@${tag}`, row);
    return row;
  }

  yank(row: Row, reason: string): void {
    Object.assign(row, { yanked_at: '2026-01-01T00:00:00Z', yanked_reason: reason });
  }

  /** Adds a version of a dataset package. Answers its row. */
  publishDataset(dataset: DatasetPackage): Row {
    const { org, name } = dataset;
    const files = Object.entries(dataset.files ?? {}).map(([path, content]) => ({
      path,
      content,
      digest: `sha256:${sha256(content)}`,
    }));
    const versions = this.#table('dataset_version');
    const row = {
      id: versions.length + 1,
      content_hash: datasetDigestOf(dataset.tasks, files),
      revision: versions.filter((version) => version['owner'] === `${org}/${name}`).length + 1,
      owner: `${org}/${name}`,
      yanked_at: null,
      yanked_reason: null,
      package: { name, type: 'dataset', org: { name: org } },
    };
    versions.push(row);
    for (const tag of dataset.tags ?? ['latest']) {
      const tags = this.#table('dataset_version_tag');
      const isMoved = (other: Row): boolean => other['tag'] === tag && other['owner'] === row.owner;
      const rest = tags.filter((other) => !isMoved(other));
      const added = { tag, owner: row.owner, dataset_version: row, package: row.package };
      tags.splice(0, tags.length, ...rest, added);
    }
    const edges = this.#table('dataset_version_task');
    for (const task of dataset.tasks)
      edges.push({ dataset_version_id: row.id, task_version_id: task['id'], task_version: task });
    for (let hidden = 0; hidden < (dataset.hidden ?? 0); hidden += 1)
      edges.push({
        dataset_version_id: row.id,
        task_version_id: `hidden-${hidden}`,
        task_version: null,
      });
    for (const { path, content, digest } of files) {
      const storagePath = `datasets/${org}/${name}/${digest.slice('sha256:'.length)}/${path}`;
      this.#objects.set(storagePath, Buffer.from(content));
      this.#table('dataset_version_file').push({
        dataset_version_id: row.id,
        path,
        storage_path: storagePath,
        content_hash: digest,
        size_bytes: Buffer.byteLength(content),
      });
    }
    return row;
  }

  /** A dataset without an organisation, as the RPC get_dataset answers it. */
  publishLegacyDataset(dataset: Row): void {
    this.#legacy.push(dataset);
    this.#table('dataset').push({ name: dataset['name'], version: dataset['version'] });
  }

  #table(name: string): Row[] {
    const rows = this.#tables[name];
    if (rows === undefined) throw new Error(`no table ${name}`);
    return rows;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.baseUrl);
    this.requests.push(`${request.method ?? ''} ${url.pathname}${url.search}`);
    const body = await text(request);
    const fault = this.#takeFault(url.pathname);
    if (fault !== null && (await inject(fault, response))) return;
    if (request.headers['apikey'] !== this.key) {
      send(response, 401, { message: 'Invalid API key' });
      return;
    }
    const answer = this.#route(request.method ?? '', url, body);
    if (fault?.kind === 'truncated' || fault?.kind === 'stalled') {
      await sendHalf(fault, answer.body, response);
      return;
    }
    response.writeHead(answer.status, { 'content-type': answer.type });
    response.end(answer.body);
  }

  #takeFault(path: string): Fault['how'] | null {
    const found = this.#faults.find(({ fault, left }) => left > 0 && path.includes(fault.path));
    if (found === undefined) return null;
    found.left -= 1;
    return found.fault.how;
  }

  #route(method: string, url: URL, body: string): Answer {
    const [area, version, ...rest] = url.pathname.split('/').slice(1);
    if (area === 'storage' && version === 'v1' && rest[0] === 'object' && rest[1] === 'packages') {
      const object = this.#objects.get(rest.slice(2).map(decodeURIComponent).join('/'));
      if (object === undefined) return json({ code: 'NoSuchKey', message: 'not found' }, 404);
      return { status: 200, type: 'application/gzip', body: object };
    }
    if (area !== 'rest' || version !== 'v1') return json({ message: 'no such route' }, 404);
    if (method === 'POST' && rest[0] === 'rpc')
      return json(this.#call(rest[1] ?? '', JSON.parse(body) as Record<string, string>));
    const [table = ''] = rest;
    if (method === 'POST' && table.endsWith('_download')) {
      this.downloads.push(JSON.parse(body));
      return { status: 201, type: 'application/json', body: '' };
    }
    return json(query(this.#table(table), url.searchParams));
  }

  #call(procedure: string, parameters: Readonly<Record<string, string>>): unknown {
    if (procedure === 'resolve_task_version') {
      const owner = `${parameters['p_org']}/${parameters['p_name']}`;
      const ref = parameters['p_ref'] ?? '';
      const found =
        this.#tags.get(`${owner}@${ref}`) ??
        this.#tasks.find(
          (row) =>
            row['owner'] === owner &&
            (String(row['revision']) === ref || row['content_hash'] === ref),
        );
      return found ?? null;
    }
    if (procedure === 'get_dataset')
      return (
        this.#legacy.find(
          (row) =>
            row['name'] === parameters['p_name'] && row['version'] === parameters['p_version'],
        ) ?? null
      );
    throw new Error(`no procedure ${procedure}`);
  }
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string | Buffer;
}

function json(document: unknown, status = 200): Answer {
  return { status, type: 'application/json', body: JSON.stringify(document) };
}

function datasetDigestOf(
  tasks: readonly Row[],
  files: readonly { readonly path: string; readonly digest: string }[],
): string {
  const parts = [
    tasks
      .map((task) => String(task['content_hash']))
      .sort()
      .join(','),
  ];
  if (files.length > 0)
    parts.push(
      files
        .map(({ path, digest }) => `${path}:${digest}`)
        .sort()
        .join(','),
    );
  return `sha256:${sha256(parts.join(';'))}`;
}
