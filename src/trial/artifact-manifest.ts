import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';

/** One line of `artifacts/manifest.json`. */
const manifestEntrySchema = z.object({
  source: z.string(),
  /** `artifacts/<path>`. */
  destination: z.string(),
  type: z.enum(['file', 'directory']),
  status: z.enum(['ok', 'failed', 'empty', 'skipped']),
  service: z
    .string()
    .nullish()
    .transform((name) => name ?? null),
});
export type ManifestEntry = z.output<typeof manifestEntrySchema>;

const manifestName = 'manifest.json';

/** The entries of a folder's manifest; none when there is no readable one. */
export async function readManifest(artifactsDir: string): Promise<readonly ManifestEntry[]> {
  try {
    const text = await readFile(path.join(artifactsDir, manifestName), 'utf8');
    return z.array(manifestEntrySchema).parse(JSON.parse(text));
  } catch {
    return [];
  }
}

/** Adds entries behind those of earlier passes. Without entries nothing is written. */
export async function appendManifest(
  artifactsDir: string,
  entries: readonly ManifestEntry[],
): Promise<void> {
  if (entries.length === 0) return;
  await mkdir(artifactsDir, { recursive: true });
  const all = [...(await readManifest(artifactsDir)), ...entries];
  await writeFile(path.join(artifactsDir, manifestName), `${JSON.stringify(all, null, 2)}\n`);
}
