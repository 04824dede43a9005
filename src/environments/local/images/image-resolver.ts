/**
 * From what a task names to an image in the store: what is here, else a build, a pull, or an archive that stands in for a base image. One
 * piece of work per image however many trials wait for it, in this process and in others; failures are remembered for a while.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { isRolloutError, RolloutError } from '../../../core/errors.ts';
import { makeFolder } from '../../../core/make-folder.ts';
import { SingleFlight } from '../../../core/single-flight.ts';
import type { ImageSource } from '../../environment.ts';
import { dockerfileBases } from '../../shared/dockerfile-bases.ts';
import { fullImageReference, ImageArchives } from '../../shared/image-archives.ts';
import { NegativeCache } from '../../shared/negative-cache.ts';
import type { CompiledLocalOptions, LocalPorts } from '../options.ts';
import { Buildah, type OnLine } from './buildah.ts';
import { ImageStore, type StoredImage } from './image-store.ts';

export interface ImageWish {
  readonly source: Exclude<ImageSource, { readonly kind: 'compose' }>;
  readonly forceBuild: boolean;
  readonly extraCaBundle: string | null;
  readonly onLine: OnLine;
}

const rememberMs = 5 * 60_000;
const buildLockMs = 60 * 60_000;

export class ImageResolver {
  readonly store: ImageStore;
  readonly #options: CompiledLocalOptions;
  readonly #ports: LocalPorts;
  readonly #buildah: Buildah;
  readonly #archives: ImageArchives;
  readonly #flights = new SingleFlight<StoredImage>();
  readonly #failures: NegativeCache<RolloutError>;
  /** References that no registry gave. */
  readonly #unpullable: NegativeCache<true>;

  constructor(options: CompiledLocalOptions, ports: LocalPorts, store: ImageStore) {
    this.store = store;
    this.#options = options;
    this.#ports = ports;
    this.#buildah = new Buildah(path.join(options.cacheDir, 'buildah'));
    this.#archives = new ImageArchives(options.imageArchivesDir);
    this.#failures = new NegativeCache({ ttlMs: rememberMs, clock: ports.clock });
    this.#unpullable = new NegativeCache({ ttlMs: rememberMs, clock: ports.clock });
  }

  get canBuild(): boolean {
    return this.#buildah.isInstalled;
  }

  /** IMAGE_NOT_FOUND, IMAGE_BUILD_FAILED, IMAGE_INVALID, DISK_FULL, ENVIRONMENT_UNAVAILABLE (no buildah). */
  async resolve(wish: ImageWish, signal: AbortSignal): Promise<StoredImage> {
    const { source } = wish;
    const reference = source.kind === 'prebuilt' ? source.reference : buildName(source.contextHash);
    if (!wish.forceBuild || source.kind === 'prebuilt') {
      const ready = await this.store.find(reference);
      if (ready !== null) return ready;
      const failure = this.#failures.get(reference);
      if (failure !== null) throw failure;
    }
    return this.#flights.run(reference, signal, async (inner) => {
      try {
        return await this.#exclusive(reference, inner, async () =>
          source.kind === 'prebuilt'
            ? this.#obtain(reference, wish, inner)
            : this.#build(source.contextDir, wish, { name: reference, signal: inner }),
        );
      } catch (error) {
        const isLasting = isRolloutError(error) && !error.retryable;
        // That every asker has gone says nothing about the image.
        if (isLasting && !inner.aborted) this.#failures.remember(reference, error);
        throw error;
      }
    });
  }

  async #exclusive<T>(key: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const dir = path.join(this.#options.cacheDir, 'locks');
    await makeFolder(dir, { mode: 0o700 });
    const file = path.join(dir, `image-${key.replaceAll(/[^\w.-]/g, '-').slice(-150)}.lock`);
    const lock = await this.#ports.locks.acquire(file, { timeoutMs: buildLockMs, signal });
    try {
      return await work();
    } finally {
      lock.release();
    }
  }

  async #obtain(reference: string, wish: ImageWish, signal: AbortSignal): Promise<StoredImage> {
    const ready = await this.store.find(reference); // another process may have been faster
    if (ready !== null) return ready;
    const full = fullImageReference(reference);
    if (
      this.#buildah.isInstalled &&
      (await this.#exclusive(`base-${full}`, signal, () =>
        this.#isPulled(full, wish.onLine, signal),
      ))
    )
      return this.#export(full, reference, signal);
    const archive = await this.#archives.find(reference);
    if (archive === null) throw this.#notFound(reference);
    this.#noteArchive(reference, archive, wish.onLine); // buildah need not work for this
    await this.store.loadArchive(archive, { signal });
    const loaded = await this.store.find(reference);
    if (loaded === null) throw this.#notFound(reference);
    return loaded;
  }

  async #build(
    contextDir: string,
    wish: ImageWish,
    options: { readonly name: string; readonly signal: AbortSignal },
  ): Promise<StoredImage> {
    const { name, signal } = options;
    if (!wish.forceBuild) {
      const ready = await this.store.find(name);
      if (ready !== null) return ready;
    }
    const dockerfile = path.join(contextDir, 'Dockerfile');
    if (!existsSync(dockerfile)) throw noDockerfile(dockerfile);
    for (const base of dockerfileBases(await readFile(dockerfile, 'utf8')))
      if (!(await this.#ensureInBuildah(base, wish.onLine, signal))) throw this.#notFound(base);
    const { extraCaBundle, onLine } = wish;
    await this.#buildah.build({ contextDir, name, extraCaBundle, onLine }, signal);
    return this.#export(name, name, signal);
  }

  /** Present, else pulled, else from an archive. False when it is nowhere. */
  async #ensureInBuildah(reference: string, onLine: OnLine, signal: AbortSignal): Promise<boolean> {
    const full = fullImageReference(reference);
    if (await this.#buildah.has(full, signal)) return true;
    return this.#exclusive(`base-${full}`, signal, async () => {
      if (await this.#isPulled(full, onLine, signal)) return true;
      const archive = await this.#archives.find(full);
      if (archive === null) return false;
      this.#noteArchive(reference, archive, onLine);
      await this.#buildah.load(archive, full, signal);
      return true;
    });
  }

  async #isPulled(full: string, onLine: OnLine, signal: AbortSignal): Promise<boolean> {
    if (await this.#buildah.has(full, signal)) return true;
    if (this.#unpullable.get(full) !== null) return false;
    const startMs = this.#options.pullStartTimeoutMs;
    if (await this.#buildah.pull(full, { startMs, signal, onLine })) return true;
    this.#unpullable.remember(full, true);
    return false;
  }

  #noteArchive(reference: string, archive: string, onLine: OnLine): void {
    this.#ports.logger.log('info', 'an image archive stands in for a base image', { reference });
    onLine(`No registry gave ${reference}: taking it from the archive ${path.basename(archive)}`);
  }

  async #export(name: string, tag: string, signal: AbortSignal): Promise<StoredImage> {
    const image = { reference: name, known: await this.store.layerSizes() };
    const images = await this.#buildah.exported(image, signal, (layout) =>
      this.store.loadArchive(layout, { signal, tag }),
    );
    const [made] = images;
    if (made === undefined) throw this.#notFound(tag);
    return made;
  }

  #notFound(reference: string): RolloutError {
    const how = this.#buildah.isInstalled
      ? 'no registry gave it'
      : 'buildah, which could pull it, is not installed (`sudo apt-get install buildah`)';
    return new RolloutError('IMAGE_NOT_FOUND', `the image ${reference} is not here, and ${how}`, {
      phase: 'environment',
      remedy: `Check the name and the network, or put an archive of it (\`docker save ${reference}\`) into ${
        this.#options.imageArchivesDir ?? 'the folder of image archives'
      }.`,
    });
  }
}

function buildName(contextHash: string): string {
  return `localhost/slipway/${contextHash.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`;
}

function noDockerfile(file: string): RolloutError {
  return new RolloutError('TASK_ENVIRONMENT_UNDEFINED', `${file} does not exist`, {
    phase: 'environment',
    field: 'environment/Dockerfile',
    remedy: 'Add a Dockerfile, or set environment.docker_image.',
  });
}
