import type { Readable } from 'node:stream';
import { z } from 'zod';
import { RolloutError } from '../../../core/errors.ts';
import { fullImageReference } from '../../shared/image-archives.ts';
import { readDocument, type ArchiveFiles } from './archive-files.ts';

/** One image in an archive, in either of the two formats. */
export interface ArchivedImage {
  /** The configuration blob, byte for byte: its digest is the image's id. */
  readonly config: string;
  /** Full references. */
  readonly tags: readonly string[];
  /** Lowest first; compressed or not. */
  readonly layers: readonly (() => Promise<Readable>)[];
}

const dockerManifest = z.array(
  z.object({
    Config: z.string(),
    RepoTags: z.array(z.string()).nullish(),
    Layers: z.array(z.string()),
  }),
);
const descriptor = z.object({
  digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
  mediaType: z.string().default(''),
  annotations: z.record(z.string(), z.string()).nullish(),
  platform: z.object({ os: z.string(), architecture: z.string() }).nullish(),
});
const index = z.object({ manifests: z.array(descriptor) });
const manifest = z.object({ config: descriptor, layers: z.array(descriptor) });

const architectures: Readonly<Partial<Record<string, string>>> = { x64: 'amd64', arm64: 'arm64' };

/** Every image of a `docker save` archive, an OCI archive or an OCI layout. IMAGE_INVALID when it is none of them. */
export async function imagesOfArchive(files: ArchiveFiles): Promise<readonly ArchivedImage[]> {
  // Newer `docker save` writes both formats; the older one is the complete one for every engine.
  const docker = await readDocument(files, 'manifest.json');
  if (docker !== null) return dockerImages(files, docker);
  const oci = await readDocument(files, 'index.json');
  if (oci === null) throw invalid('holds neither manifest.json nor index.json');
  return ociImages(files, oci, []);
}

async function dockerImages(files: ArchiveFiles, text: string): Promise<readonly ArchivedImage[]> {
  return Promise.all(
    parse(dockerManifest, text, 'manifest.json').map(async (entry) => ({
      config: await required(files, entry.Config),
      tags: (entry.RepoTags ?? []).map(fullImageReference),
      layers: entry.Layers.map((name) => async () => opened(files, name)),
    })),
  );
}

async function ociImages(
  files: ArchiveFiles,
  text: string,
  outerTags: readonly string[],
): Promise<readonly ArchivedImage[]> {
  const images: ArchivedImage[] = [];
  for (const entry of parse(index, text, 'index').manifests) {
    const { platform } = entry;
    if (platform && !isOurs(platform)) continue;
    const body = await required(files, blob(entry.digest));
    const tags = [...outerTags, ...tagsOf(entry.annotations ?? {})];
    if (entry.mediaType.includes('index') || entry.mediaType.includes('list')) {
      images.push(...(await ociImages(files, body, tags)));
      continue;
    }
    const { config, layers } = parse(manifest, body, 'manifest');
    images.push({
      config: await required(files, blob(config.digest)),
      tags,
      layers: layers.map((layer) => async () => opened(files, blob(layer.digest))),
    });
  }
  return images;
}

function isOurs(platform: { readonly os: string; readonly architecture: string }): boolean {
  const wanted = architectures[process.arch] ?? process.arch;
  return platform.os === 'linux' && platform.architecture === wanted;
}

function tagsOf(annotations: Readonly<Record<string, string>>): readonly string[] {
  const name =
    annotations['io.containerd.image.name'] ?? annotations['org.opencontainers.image.ref.name'];
  return name !== undefined && /[:/@]/.test(name) ? [fullImageReference(name)] : [];
}

function blob(digest: string): string {
  return `blobs/${digest.replace(':', '/')}`;
}

async function required(files: ArchiveFiles, name: string): Promise<string> {
  const text = await readDocument(files, name);
  if (text === null) throw invalid(`lacks ${name}`);
  return text;
}

async function opened(files: ArchiveFiles, name: string): Promise<Readable> {
  const stream = await files.stream(name);
  if (stream === null) throw invalid(`lacks the layer ${name}`);
  return stream;
}

function parse<T>(schema: z.ZodType<T>, text: string, what: string): T {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw invalid(`has a ${what} that is not JSON`, error);
  }
  const parsed = schema.safeParse(json);
  if (!parsed.success) throw invalid(`has a ${what} of an unknown form`, parsed.error);
  return parsed.data;
}

function invalid(why: string, cause?: unknown): RolloutError {
  return new RolloutError('IMAGE_INVALID', `the image archive ${why}`, {
    phase: 'environment',
    cause,
    remedy: 'Save the image again, with `docker save` or as an OCI archive.',
  });
}
