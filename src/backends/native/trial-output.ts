/** What a finished trial leaves for the archive: its conversation, its artifacts, its logs. */
import { lstat, readdir } from 'node:fs/promises';
import path from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { loadTrajectory } from '../../trajectory/validate.ts';
import type { KeptFile } from '../../wire/rollout/kept-file.ts';

/** A longer document is kept as the agent wrote it: reading it would hold up the server. */
const maxDocumentBytes = 16 * 1024 * 1024;
const logFiles = ['trial.log', 'exception.txt', 'result.json', 'agent', 'verifier', 'steps'];

export interface TrialOutput {
  /** null = there is none, or it is a file. */
  readonly trajectory: Readonly<Record<string, unknown>> | null;
  readonly files: readonly KeptFile[];
  /** Not empty = the folder is worth keeping. */
  readonly problems: readonly string[];
}

export async function trialOutput(dir: string): Promise<TrialOutput> {
  const { trajectory, problems, files } = await findTrajectory(dir);
  const names = await readdir(dir).catch((): string[] => []);
  const logs = logFiles.filter((name) => names.includes(name));
  const artifacts = names.includes('artifacts') ? ['artifacts'] : [];
  return {
    trajectory,
    problems,
    files: [
      ...files,
      ...artifacts.map((name) => ({ name, path: path.join(dir, name) })),
      ...logs.map((name) => ({ name: `logs/${name}`, path: path.join(dir, name) })),
    ],
  };
}

/** Of several documents, one per step, none is the rollout's. */
async function findTrajectory(dir: string): Promise<TrialOutput> {
  const steps = await readdir(path.join(dir, 'steps')).catch((): string[] => []);
  const places = [dir, ...steps.sort().map((name) => path.join(dir, 'steps', name))];
  const found: { readonly file: string; readonly sizeBytes: number }[] = [];
  for (const place of places) {
    const file = path.join(place, 'agent', 'trajectory.json');
    const entry = await lstat(file).catch(() => null);
    if (entry?.isFile() === true) found.push({ file, sizeBytes: entry.size });
  }
  const [only] = found;
  if (only === undefined) return { trajectory: null, files: [], problems: [] };
  if (found.length > 1)
    return {
      trajectory: null,
      files: [],
      problems: [`${found.length} trajectories, one per step`],
    };
  if (only.sizeBytes > maxDocumentBytes)
    return {
      trajectory: null,
      files: [{ name: 'trajectory.json', path: only.file }],
      problems: [],
    };
  try {
    return { trajectory: { ...(await loadTrajectory(only.file)) }, files: [], problems: [] };
  } catch (error) {
    return { trajectory: null, files: [], problems: [messageOf(error)] };
  }
}
