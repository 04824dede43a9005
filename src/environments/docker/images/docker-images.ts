/**
 * Images as sandboxes need them. Each is made or fetched once however many trials ask (single flight), and a failure is remembered for
 * a while, so that a task whose image does not build costs one build and not one per attempt.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { RolloutError, attribute, isRolloutError } from '../../../core/errors.ts';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import { SingleFlight } from '../../../core/single-flight.ts';
import { dockerfileBases } from '../../shared/dockerfile-bases.ts';
import { ImageArchives } from '../../shared/image-archives.ts';
import { NegativeCache } from '../../shared/negative-cache.ts';
import { withCaCertificates } from '../../shared/ca-dockerfile.ts';
import { caBundle, caFile } from '../../shared/extra-ca.ts';
import type { EngineClient } from '../engine/engine-client.ts';
import { EngineError, engineFailure } from '../engine/engine-error.ts';
import { readProgress } from '../engine/progress.ts';
import type { CompiledDockerOptions, DockerPorts } from '../options.ts';
import { packContext, type ContextOverlay } from './build-context.ts';
import { registryAuth } from './registry-auth.ts';

export interface ImageRequest {
  readonly signal: AbortSignal;
  readonly onProgress: (line: string) => void;
}

export interface BuildRequest extends ImageRequest {
  readonly contextDir: string;
  readonly contextHash: string;
  readonly forceBuild: boolean;
  /** Tells several images of one context hash apart: the name of a compose service. */
  readonly variant?: string;
  /** Path in the context; default `Dockerfile`. */
  readonly dockerfile?: string;
  /** The Dockerfile's text, instead of a file in the context. */
  readonly inline?: string;
  readonly target?: string;
  readonly args?: Readonly<Record<string, string>>;
}

/** How long a failure is remembered. */
const rememberMs = 120_000;
const logTailLines = 60;

/**
 * Extra certificates in the build context. The engine's classic builder has neither secrets nor mounts, so each stage copies the file,
 * and one public file stays at the place where sandboxes have theirs.
 */
const caContextFile = '.slipway-ca-certificates.pem';
const copyCaFile = `COPY ${caContextFile} ${caFile}`;

export class DockerImages {
  readonly #engine: EngineClient;
  readonly #options: CompiledDockerOptions;
  readonly #archives: ImageArchives;
  readonly #flights = new SingleFlight<undefined>();
  readonly #failures: NegativeCache<RolloutError>;

  constructor(engine: EngineClient, options: CompiledDockerOptions, ports: DockerPorts) {
    this.#engine = engine;
    this.#options = options;
    this.#archives = new ImageArchives(options.imageArchivesDir);
    this.#failures = new NegativeCache({ ttlMs: rememberMs, clock: ports.clock });
  }

  /** Makes sure that an image is here: as it is, pulled, or from an archive. IMAGE_NOT_FOUND. */
  async ensurePrebuilt(reference: string, request: ImageRequest): Promise<void> {
    if (await this.#exists(reference, request.signal)) return;
    await this.#once(`pull ${reference}`, request.signal, async (signal) => {
      await this.#fetch(reference, { signal, onProgress: request.onProgress });
    });
  }

  /** Builds a context unless its image is here; resolves with the image's tag. IMAGE_BUILD_FAILED, IMAGE_NOT_FOUND. */
  async ensureBuilt(request: BuildRequest): Promise<string> {
    const ca = this.#options.extraCaBundle;
    const bundle = ca === null ? null : await caBundle(ca);
    const tag = imageTag(request, bundle);
    if (!request.forceBuild && (await this.#exists(tag, request.signal))) return tag;
    await this.#once(`build ${tag}`, request.signal, async (signal) => {
      await this.#build(tag, { ...request, signal }, bundle);
    });
    return tag;
  }

  async #once(
    key: string,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const known = this.#failures.get(key);
    if (known !== null) throw known;
    await this.#flights.run(key, signal, async (shared) => {
      try {
        await work(shared);
      } catch (error) {
        const isLasting =
          isRolloutError(error, 'IMAGE_BUILD_FAILED') || isRolloutError(error, 'IMAGE_NOT_FOUND');
        if (isLasting && !shared.aborted) this.#failures.remember(key, error);
        throw error;
      }
      return undefined;
    });
  }

  async #exists(reference: string, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#engine.json({ method: 'GET', path: `/images/${reference}/json`, signal });
      return true;
    } catch (error) {
      if (error instanceof EngineError && error.status === 404) return false;
      signal.throwIfAborted();
      throw engineFailure(error, {
        code: 'IMAGE_INVALID',
        phase: 'environment',
        what: `looking for the image ${reference}`,
      });
    }
  }

  async #fetch(reference: string, request: ImageRequest): Promise<void> {
    const { signal } = request;
    const failure = await this.#pull(reference, request);
    if (failure === null) return;
    const archive = await this.#archives.find(reference);
    if (archive === null)
      throw new RolloutError(
        'IMAGE_NOT_FOUND',
        `the image ${reference} is neither here nor in a registry that answers`,
        {
          phase: 'environment',
          field: 'environment.docker_image',
          cause: failure,
          detail: failure.message,
          remedy:
            'Check the name, log in to its registry, or put an archive of it into the folder of image archives.',
        },
      );
    request.onProgress(`loading ${reference} from ${path.basename(archive)}`);
    try {
      const answer = await this.#engine.stream({
        method: 'POST',
        path: '/images/load',
        query: { quiet: 1 },
        tar: createReadStream(archive),
        signal,
      });
      await readProgress(answer, request.onProgress);
    } catch (error) {
      signal.throwIfAborted();
      throw engineFailure(error, {
        code: 'IMAGE_INVALID',
        phase: 'environment',
        what: `loading the image ${reference} from its archive`,
      });
    }
    if (!(await this.#exists(reference, signal)))
      throw new RolloutError('IMAGE_INVALID', `the archive of ${reference} does not carry it`, {
        phase: 'environment',
      });
  }

  /** Null when it is here; else why not. DISK_FULL and a daemon that does not answer are thrown. */
  async #pull(reference: string, request: ImageRequest): Promise<RolloutError | null> {
    const ms = this.#options.pullTimeoutMs;
    const timedOut = (): RolloutError =>
      new RolloutError('IMAGE_NOT_FOUND', `pulling ${reference} took longer than ${ms} ms`, {
        phase: 'environment',
        retryable: true,
        remedy: 'Pull the image beforehand with "docker pull".',
      });
    using limit = new LinkedAbort([request.signal], { ms, reason: timedOut });
    const auth = await registryAuth(reference, this.#options.dockerConfigDir);
    const name =
      reference.includes('@') || /:[^/]+$/.test(reference) ? reference : `${reference}:latest`;
    try {
      const answer = await this.#engine.stream({
        method: 'POST',
        path: '/images/create',
        query: { fromImage: name, platform: this.#options.platform ?? undefined },
        headers: auth === null ? {} : { 'x-registry-auth': auth },
        signal: limit.signal,
      });
      await readProgress(answer, request.onProgress);
      return null;
    } catch (error) {
      request.signal.throwIfAborted();
      const failure = engineFailure(limit.signal.aborted ? timedOut() : error, {
        code: 'IMAGE_NOT_FOUND',
        phase: 'environment',
        what: `pulling ${reference}`,
      });
      if (failure.code !== 'IMAGE_NOT_FOUND') throw failure;
      return failure;
    }
  }

  async #build(tag: string, request: BuildRequest, bundle: string | null): Promise<void> {
    const name = request.dockerfile ?? 'Dockerfile';
    const dockerfile = request.inline ?? (await readDockerfile(request.contextDir, name));
    for (const base of dockerfileBases(dockerfile)) await this.ensurePrebuilt(base, request);
    // A Dockerfile that is not a file of the context gets a name there; the others keep theirs.
    const isInside = request.inline === undefined && !path.relative('', name).startsWith('..');
    const sentName = isInside ? path.normalize(name) : '.slipway-Dockerfile';
    const sent = bundle === null ? dockerfile : withCaCertificates(dockerfile, [copyCaFile]);
    const overlay: ContextOverlay = {
      ...(isInside && bundle === null ? {} : { [sentName]: sent }),
      ...(bundle === null ? {} : { [caContextFile]: bundle }),
    };
    const tail: string[] = [];
    const ms = this.#options.buildTimeoutMs;
    using limit = new LinkedAbort([request.signal], {
      ms,
      reason: () => buildFailed(tail, `it took longer than ${ms} ms`),
    });
    try {
      const answer = await this.#engine.stream({
        method: 'POST',
        path: '/build',
        query: {
          t: tag,
          dockerfile: sentName,
          target: request.target,
          buildargs: JSON.stringify(request.args ?? {}),
          rm: 1,
          forcerm: 1,
          platform: this.#options.platform ?? undefined,
          labels: JSON.stringify({ 'slipway.image': request.contextHash }),
        },
        tar: packContext(request.contextDir, { dockerfile: sentName, overlay }),
        signal: limit.signal,
      });
      await readProgress(answer, (line) => {
        tail.push(line);
        if (tail.length > logTailLines) tail.shift();
        request.onProgress(line);
      });
    } catch (error) {
      limit.signal.throwIfAborted();
      const failure = engineFailure(error, {
        code: 'IMAGE_BUILD_FAILED',
        phase: 'environment',
        what: 'building the image',
      });
      if (failure.code !== 'IMAGE_BUILD_FAILED') throw failure;
      throw buildFailed(tail, failure.message, error);
    }
  }
}

function buildFailed(tail: readonly string[], why: string, cause?: unknown): RolloutError {
  const wantsBuildKit = /buildkit|unknown flag: ?(mount|link|chmod)|unknown instruction/i.test(why);
  return new RolloutError('IMAGE_BUILD_FAILED', `the Dockerfile does not build: ${why}`, {
    phase: 'environment',
    field: 'environment/Dockerfile',
    cause,
    detail: tail.join('\n'),
    remedy: wantsBuildKit
      ? 'The engine builds without BuildKit here: write the instruction without BuildKit syntax, or build the image yourself and name it as docker_image.'
      : 'Read the end of the build log, correct the Dockerfile and run again.',
  });
}

async function readDockerfile(contextDir: string, name: string): Promise<string> {
  try {
    return await readFile(path.resolve(contextDir, name), 'utf8');
  } catch (error) {
    throw attribute(error, 'IMAGE_BUILD_FAILED', 'environment', `reading ${name}`);
  }
}

/** The tag of a context's image. A content hash may be spelt `sha256:…`, and a tag must not have a colon. */
function imageTag(request: BuildRequest, bundle: string | null): string {
  const parts = [request.contextHash.replace(/^sha256:/, ''), request.variant ?? ''];
  if (bundle !== null)
    parts.push(`ca${createHash('sha256').update(bundle).digest('hex').slice(0, 8)}`);
  const tag = parts
    .filter((part) => part !== '')
    .join('-')
    .replaceAll(/[^\w.-]/g, '-');
  return `slipway-build:${tag.slice(0, 120)}`;
}
