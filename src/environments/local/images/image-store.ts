/**
 * Images on this machine, shared by all runs of a user: each layer is unpacked once, under a lock, into `layers/` and is then only
 * read; `configs/` holds configurations by image id; `tags/` says which image a reference means. Everything appears by
 * rename, so that a killed process leaves nothing half made that could be taken for whole.
 */
import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { attribute, RolloutError } from '../../../core/errors.ts';
import type { LockPort } from '../../../core/lock.ts';
import { makeFolder } from '../../../core/make-folder.ts';
import { fullImageReference } from '../../shared/image-archives.ts';
import { openArchiveFiles } from './archive-files.ts';
import { imagesOfArchive, type ArchivedImage } from './archived-image.ts';
import { parseImageConfig, type ImageConfig } from './image-config.ts';
import { unpackLayer, type LayerSource } from './unpack-layer.ts';

/** An image that is ready to be a sandbox's root. */
export interface StoredImage {
  /** Hex digest of the configuration. */
  readonly id: string;
  readonly config: ImageConfig;
  /** Folder that holds the layers; names in `layers` are relative to it. */
  readonly layersDir: string;
  /** Highest first, as overlay wants them. */
  readonly layers: readonly string[];
}

const layerLockMs = 10 * 60_000;
const emptyLayer = 'empty';

export class ImageStore {
  readonly #dir: string;
  readonly #locks: LockPort;

  constructor(dir: string, locks: LockPort) {
    this.#dir = dir;
    this.#locks = locks;
  }

  get layersDir(): string {
    return path.join(this.#dir, 'layers');
  }

  /** The image that a reference, or a tag of a build, means; null when it is not here or not complete. */
  async find(reference: string): Promise<StoredImage | null> {
    let id: string;
    try {
      id = await readFile(this.#tagFile(reference), 'utf8');
    } catch {
      return null;
    }
    return this.#image(id.trim());
  }

  /**
   * Brings in all images of an archive (`docker save`, OCI archive or layout), under their own tags, or under `tag` alone when it is
   * given. Resolves with the images in the order of the archive. IMAGE_INVALID, DISK_FULL.
   */
  async loadArchive(
    location: string,
    options: { readonly signal: AbortSignal; readonly tag?: string },
  ): Promise<readonly StoredImage[]> {
    try {
      const images = await imagesOfArchive(await openArchiveFiles(location));
      if (images.length === 0) throw empty(location);
      const stored: StoredImage[] = [];
      for (const image of images) {
        const made = await this.#add(image, options.signal);
        const tags = options.tag === undefined ? image.tags : [options.tag];
        for (const tag of tags) await this.tag(made.id, tag);
        stored.push(made);
      }
      return stored;
    } catch (error) {
      options.signal.throwIfAborted();
      throw attribute(error, 'IMAGE_INVALID', 'environment', `image archive ${location}`);
    }
  }

  /** Layers that are here, with the size of the tar stream each was unpacked from. */
  async layerSizes(): Promise<ReadonlyMap<string, number>> {
    const sizes = new Map<string, number>();
    for (const name of await readdir(this.#sizesDir).catch(() => [])) {
      const diffId = `sha256:${name}`;
      if (!existsSync(path.join(this.layersDir, layerName(diffId)))) continue;
      sizes.set(diffId, Number(await readFile(path.join(this.#sizesDir, name), 'utf8')));
    }
    return sizes;
  }

  async tag(id: string, reference: string): Promise<void> {
    await this.#write(this.#tagFile(reference), id);
  }

  async #add(image: ArchivedImage, signal: AbortSignal): Promise<StoredImage> {
    const config = parseImageConfig(image.config);
    if (config.diffIds.length !== image.layers.length)
      throw new RolloutError(
        'IMAGE_INVALID',
        `the image names ${config.diffIds.length} layers and brings ${image.layers.length}`,
        { phase: 'environment', remedy: 'Build or save the image again.' },
      );
    for (const [at, diffId] of config.diffIds.entries()) {
      const open = image.layers[at];
      if (open !== undefined) await this.#ensureLayer({ diffId, open }, signal);
    }
    await makeFolder(path.join(this.layersDir, emptyLayer));
    const id = createHash('sha256').update(image.config).digest('hex');
    await this.#write(this.#configFile(id), image.config);
    return this.#stored(id, config);
  }

  async #ensureLayer(source: LayerSource, signal: AbortSignal): Promise<void> {
    const name = layerName(source.diffId);
    const target = path.join(this.layersDir, name);
    if (existsSync(target)) return;
    const lockDir = path.join(this.#dir, 'locks');
    await makeFolder(lockDir, { mode: 0o700 });
    const lock = await this.#locks.acquire(path.join(lockDir, `${name}.lock`), {
      timeoutMs: layerLockMs,
      signal,
    });
    const dir = path.join(this.#dir, 'incoming', name);
    try {
      if (existsSync(target)) return;
      await rm(dir, { recursive: true, force: true }); // what a killed process left
      await makeFolder(dir, { mode: 0o755 });
      await makeFolder(this.layersDir);
      const size = await unpackLayer(source, dir, signal);
      await this.#write(
        path.join(this.#sizesDir, source.diffId.slice('sha256:'.length)),
        String(size),
      );
      await rename(dir, target);
    } catch (error) {
      await rm(dir, { recursive: true, force: true });
      throw error;
    } finally {
      lock.release();
    }
  }

  async #image(id: string): Promise<StoredImage | null> {
    let text: string;
    try {
      text = await readFile(this.#configFile(id), 'utf8');
    } catch {
      return null;
    }
    const image = this.#stored(id, parseImageConfig(text));
    const isComplete = image.layers.every((layer) => existsSync(path.join(this.layersDir, layer)));
    return isComplete ? image : null;
  }

  #stored(id: string, config: ImageConfig): StoredImage {
    // The kernel refuses a layer named twice; the higher place decides.
    const layers = [...new Set(config.diffIds.map(layerName).reverse())];
    return {
      id,
      config,
      layersDir: this.layersDir,
      layers: layers.length === 0 ? [emptyLayer] : layers,
    };
  }

  async #write(file: string, content: string): Promise<void> {
    await makeFolder(path.dirname(file));
    const draft = `${file}.${randomUUID()}`;
    await writeFile(draft, content);
    await rename(draft, file);
  }

  get #sizesDir(): string {
    return path.join(this.#dir, 'layer-sizes');
  }

  #configFile(id: string): string {
    return path.join(this.#dir, 'configs', `${id}.json`);
  }

  #tagFile(reference: string): string {
    const digest = createHash('sha256').update(fullImageReference(reference)).digest('hex');
    return path.join(this.#dir, 'tags', digest);
  }
}

/** Short, because the kernel takes all layer names of a mount in one page of 4096 bytes. */
function layerName(diffId: string): string {
  return diffId.slice('sha256:'.length).slice(0, 24);
}

function empty(location: string): RolloutError {
  return new RolloutError('IMAGE_INVALID', `${location} holds no image for this machine`, {
    phase: 'environment',
    remedy: 'Save the image for this architecture.',
  });
}
