import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { pack, type Header } from 'tar-stream';

/** Contents by POSIX path. */
export type Files = Readonly<Record<string, string>>;

export interface ArchiveEntry {
  readonly header: Partial<Header> & { readonly name: string };
  readonly content?: string | Uint8Array;
}

/** A tar.gz of exactly these entries, good or bad. */
export async function tarGz(entries: readonly ArchiveEntry[]): Promise<Buffer> {
  const archive = pack();
  for (const { header, content } of entries) archive.entry(header, content ?? '');
  archive.finalize();
  return gzipSync(await buffer(Readable.from(archive as AsyncIterable<unknown>)));
}

/** The archive that a publisher uploads for a task. */
export function taskArchive(files: Files): Promise<Buffer> {
  return tarGz(
    Object.entries(files).map(([name, content]) => ({
      header: { name, mode: name.endsWith('.sh') ? 0o755 : 0o644 },
      content,
    })),
  );
}

/** The content hash that a publisher computes, written down a second time from the specification. */
export function publishedDigest(files: Files): string {
  const isCounted = (path: string): boolean =>
    /^(?:task\.toml|instruction\.md|README\.md|trajectory\.json|(?:environment|tests|solution|steps)\/.*)$/.test(
      path,
    );
  const lines = Object.keys(files)
    .filter(isCounted)
    .sort()
    .map((path) => `${path}\0${sha256(files[path] ?? '')}\n`);
  return `sha256:${sha256(lines.join(''))}`;
}

export function sha256(content: string): string {
  return createHash('sha256').update(content).digest('hex');
}

/** A small complete task. */
export function taskFiles(word: string): Files {
  return {
    'task.toml': `schema_version = "1.4"\n[metadata]\nword = "${word}"\n`,
    'instruction.md': `Write ${word}.\n`,
    'environment/Dockerfile': 'FROM debian:bookworm-slim\n',
    'tests/test.sh': `#!/bin/sh\ngrep -q ${word} answer.txt && echo 1 > /logs/verifier/reward.txt\n`,
    'solution/solve.sh': `#!/bin/sh\necho ${word} > answer.txt\n`,
  };
}
