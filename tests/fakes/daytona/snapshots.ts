/** Snapshots of the fake: each is built once, for real, by making a sandbox of its image. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { never } from '../../../src/core/linked-abort.ts';
import type { ImageSource } from '../../../src/environments/environment.ts';
import { defaultMaxBytes, unpackInto } from '../../../src/environments/shared/safe-tar.ts';
import type { SandboxHost } from '../sandbox-host/sandbox-host.ts';
import { Refusal } from './http-exchange.ts';
import { storageKeys, type ObjectStorage } from './object-storage.ts';

export interface BuildInfo {
  readonly dockerfileContent: string;
  readonly contextHashes?: readonly string[];
}

export interface SnapshotRequest {
  readonly name: string;
  readonly imageName?: string;
  readonly buildInfo?: BuildInfo;
  readonly cpu?: number;
  readonly memory?: number;
  readonly disk?: number;
}

export interface FakeSnapshot {
  readonly id: string;
  readonly request: SnapshotRequest;
  readonly image: Promise<ImageSource>;
  state: 'pending' | 'building' | 'active' | 'inactive' | 'error' | 'build_failed';
  errorReason: string | null;
  log: string;
}

export class FakeSnapshots implements AsyncDisposable {
  readonly #host: SandboxHost;
  readonly #storage: ObjectStorage;
  readonly #known = new Map<string, FakeSnapshot>();
  readonly #folders: string[] = [];
  readonly #working = new Set<Promise<void>>();
  /** How many builds have begun. */
  builds = 0;
  /** How long each takes, on the host's clock. */
  buildMs = 0;

  constructor(host: SandboxHost, storage: ObjectStorage) {
    this.#host = host;
    this.#storage = storage;
  }

  find(idOrName: string): FakeSnapshot | null {
    return (
      this.#known.get(idOrName) ??
      [...this.#known.values()].find(({ request }) => request.name === idOrName) ??
      null
    );
  }

  list(): readonly FakeSnapshot[] {
    return [...this.#known.values()];
  }

  create(request: SnapshotRequest): FakeSnapshot {
    if (this.find(request.name) !== null)
      throw new Refusal(409, `Snapshot with name "${request.name}" already exists`);
    const snapshot: FakeSnapshot = {
      ...{ id: randomUUID(), request, state: 'pending', errorReason: null, log: '' },
      image: this.imageOf(
        request.buildInfo ?? { dockerfileContent: `FROM ${request.imageName ?? ''}\n` },
      ),
    };
    this.#known.set(snapshot.id, snapshot);
    const work = this.#build(snapshot).finally(() => this.#working.delete(work));
    this.#working.add(work);
    return snapshot;
  }

  remove(snapshot: FakeSnapshot): void {
    this.#known.delete(snapshot.id);
  }

  forgetAll(): void {
    this.#known.clear();
  }

  /** What a build is of: a plain reference, or a folder with the Dockerfile and the contexts that were stored before. */
  async imageOf({ dockerfileContent, contextHashes = [] }: BuildInfo): Promise<ImageSource> {
    const [, reference] = /^FROM (\S+)\s*$/.exec(dockerfileContent.trim()) ?? [];
    if (reference !== undefined && contextHashes.length === 0)
      return { kind: 'prebuilt', reference };
    const folder = await mkdtemp(path.join(tmpdir(), 'fake-daytona-build-'));
    this.#folders.push(folder);
    for (const hash of contextHashes) {
      const key = `${organizationId}/${hash}/context.tar`;
      const tar = this.#storage.objects.get(key);
      if (tar === undefined) throw new Error(`the context ${hash} has not been stored`);
      const limits = { strip: 0, exclude: [], maxBytes: defaultMaxBytes, signal: never };
      await unpackInto(Readable.from([tar]), folder, limits);
    }
    await writeFile(path.join(folder, 'Dockerfile'), dockerfileContent);
    return {
      kind: 'dockerfile',
      contextDir: folder,
      contextHash: randomUUID().replaceAll('-', '').padEnd(64, '0'),
    };
  }

  async #build(snapshot: FakeSnapshot): Promise<void> {
    this.builds += 1;
    snapshot.state = 'building';
    await this.#host.clock.sleep(this.buildMs, never);
    try {
      const sandbox = this.#host.create({ image: await snapshot.image, isFree: true });
      try {
        await sandbox.ready;
      } finally {
        await sandbox.remove();
      }
      snapshot.state = 'active';
    } catch (error) {
      const { code, message, detail } = error as {
        readonly code?: string;
        readonly message: string;
        readonly detail?: string | null;
      };
      snapshot.log = detail ?? '';
      snapshot.state = code === 'IMAGE_BUILD_FAILED' ? 'build_failed' : 'error';
      snapshot.errorReason = code === 'IMAGE_NOT_FOUND' ? `manifest unknown: ${message}` : message;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#working);
    for (const folder of this.#folders) await rm(folder, { recursive: true, force: true });
  }
}

export const organizationId = 'fake-organisation';

export function snapshotDto(snapshot: FakeSnapshot): Record<string, unknown> {
  const { request } = snapshot;
  const now = new Date(0).toISOString();
  return {
    ...{ id: snapshot.id, organizationId, general: false, name: request.name },
    ...{ imageName: request.imageName ?? '', state: snapshot.state, size: 1, entrypoint: null },
    ...{ cpu: request.cpu ?? 1, gpu: 0, mem: request.memory ?? 1, disk: request.disk ?? 3 },
    ...{ errorReason: snapshot.errorReason, createdAt: now, updatedAt: now, lastUsedAt: null },
    ...{ sourceSandboxId: null, regionIds: ['fake'] },
  };
}

export function pushAccess(baseUrl: string): Record<string, string> {
  return { ...storageKeys, storageUrl: `${baseUrl}/storage`, organizationId };
}
