import { readFile, readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { dirname, resolve } from 'node:path/posix';
import { RolloutError } from '../../../src/core/errors.ts';
import type { FakeFiles } from './fake-files.ts';

export interface FakeImage {
  readonly files: FakeFiles;
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  readonly user: string;
  readonly entrypoint: readonly string[];
}

export type RunStep = (
  image: FakeImage,
  command: string,
) => Promise<{ exitCode: number; log: string }>;

interface BuildWorld {
  readonly contextDir: string;
  /** The image of a FROM line; throws IMAGE_NOT_FOUND. */
  readonly base: (reference: string) => FakeImage;
  readonly run: RunStep;
}

/** Builds the Dockerfile of a context: one stage, the instructions that tasks of tests use. */
export async function buildImage(world: BuildWorld, signal: AbortSignal): Promise<FakeImage> {
  const text = await readFile(join(world.contextDir, 'Dockerfile'), 'utf8').catch(() => {
    throw buildFailed('the context has no Dockerfile', '');
  });
  let image: FakeImage | null = null;
  for (const line of text.replaceAll(/\\\n/g, '').split('\n')) {
    signal.throwIfAborted();
    const [, word = '', rest = ''] = /^\s*([A-Za-z]+)\s+(.*)$/.exec(line) ?? [];
    if (line.trim() === '' || line.trim().startsWith('#')) continue;
    if (word.toUpperCase() === 'FROM') {
      const base = world.base(rest.split(/\s+/)[0] ?? '');
      image = { ...base, files: await base.files.copy() };
    } else if (image === null) throw buildFailed(`no FROM before: ${line}`, '');
    else image = await step(world, image, { word: word.toUpperCase(), rest });
  }
  if (image === null) throw buildFailed('the Dockerfile is empty', '');
  return image;
}

async function step(
  world: BuildWorld,
  image: FakeImage,
  { word, rest }: { readonly word: string; readonly rest: string },
): Promise<FakeImage> {
  switch (word) {
    case 'RUN': {
      const { exitCode, log } = await world.run(image, rest);
      if (exitCode !== 0) throw buildFailed(`RUN ended with exit code ${exitCode}`, log);
      return image;
    }
    case 'COPY':
      await copyIn(world.contextDir, image, rest.split(/\s+/));
      return image;
    case 'ENV': {
      const [, name = '', value = ''] = /^(\w+)[= ](.*)$/.exec(rest) ?? [];
      return { ...image, env: { ...image.env, [name]: value.replace(/^"(.*)"$/, '$1') } };
    }
    case 'WORKDIR': {
      const workdir = resolve(image.workdir, rest.trim());
      await image.files.mkdir(workdir, { recursive: true });
      return { ...image, workdir };
    }
    case 'USER':
      return { ...image, user: rest.trim() };
    case 'ENTRYPOINT':
      return { ...image, entrypoint: JSON.parse(rest) as string[] };
    case 'LABEL':
    case 'CMD':
    case 'ARG':
    case 'EXPOSE':
      return image;
    default:
      throw buildFailed(`unknown instruction ${word}`, '');
  }
}

async function copyIn(contextDir: string, image: FakeImage, words: string[]): Promise<void> {
  const to = words.pop() ?? '.';
  const target = resolve(image.workdir, to);
  for (const word of words.filter((each) => !each.startsWith('--'))) {
    const from = join(contextDir, word);
    if ((await stat(from)).isDirectory()) await copyTree(from, image.files, target);
    else
      await copyFile(from, image.files, to.endsWith('/') ? join(target, basename(from)) : target);
  }
}

async function copyTree(from: string, files: FakeFiles, to: string): Promise<void> {
  await files.mkdir(to, { recursive: true });
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) await copyTree(source, files, target);
    else await copyFile(source, files, target);
  }
}

async function copyFile(from: string, files: FakeFiles, to: string): Promise<void> {
  await files.mkdir(dirname(to), { recursive: true });
  await files.writeFile(to, await readFile(from));
  await files.chmod(to, (await stat(from)).mode & 0o7777);
}

function buildFailed(message: string, log: string): RolloutError {
  const detail = log.slice(-4_000);
  return new RolloutError('IMAGE_BUILD_FAILED', message, { phase: 'environment', detail });
}
