/** What a grader wrote into the artifacts comes back by the verifier's folder: they were collected before it ran. */
import { copyFile, lstat, mkdir, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { publishDir } from '../../tasks/artifacts.ts';

const deltaName = '.osmosis-artifacts';
/** Where the trial put what it found in the folder that a grader sees. */
const collectedAt = path.join('artifacts', publishDir('linux'));

/** Resolves with whether anything was taken. Regular files only; what is in the way of one is replaced. */
export async function takeGraderArtifacts(trialDir: string): Promise<boolean> {
  const delta = path.join(trialDir, 'verifier', deltaName);
  const isFolder = (await lstat(delta).catch(() => null))?.isDirectory() === true;
  if (!isFolder) return false;
  const count = await merge(delta, path.join(trialDir, collectedAt));
  await rm(delta, { recursive: true, force: true });
  return count > 0;
}

async function merge(from: string, to: string): Promise<number> {
  await plainFolder(to);
  let count = 0;
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [path.join(from, entry.name), path.join(to, entry.name)];
    if (entry.isDirectory()) count += await merge(source, target);
    else if (entry.isFile()) {
      await rm(target, { recursive: true, force: true });
      await copyFile(source, target);
      count += 1;
    }
  }
  return count;
}

async function plainFolder(dir: string): Promise<void> {
  const entry = await lstat(dir).catch(() => null);
  if (entry?.isDirectory() === true) return;
  await rm(dir, { force: true });
  await mkdir(dir, { recursive: true });
}
