/** What a finished trial leaves for the archive: its conversation, its artifacts, its logs. */
import type { Stats } from 'node:fs';
import { lstat, readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { validateTrajectory } from '../../trajectory/validate.ts';
import type { KeptFile } from '../../wire/rollout/kept-file.ts';

/** A longer document is kept as the agent wrote it: reading it would hold up the server. */
const maxDocumentBytes = 16 * 1024 * 1024;
const logFiles = ['trial.log', 'exception.txt', 'result.json', 'agent', 'verifier'];

export interface TrialOutput {
  /** null = there is none, or it is a file. */
  readonly trajectory: Readonly<Record<string, unknown>> | null;
  readonly files: readonly KeptFile[];
  /** Not empty = the folder is worth keeping. */
  readonly problems: readonly string[];
}

export async function trialOutput(dir: string): Promise<TrialOutput> {
  const steps = await stepsOf(dir);
  const { trajectory, problems, files } = await findTrajectory(dir, steps);
  const names = await namesIn(dir);
  return {
    trajectory,
    problems,
    files: [
      ...files,
      ...filesOf(dir, ['artifacts'], { of: names, to: '' }),
      ...(await artifactsOf(dir, steps)),
      ...filesOf(dir, logFiles, { of: names, to: 'logs/' }),
      ...(await logsOf(dir, steps)),
    ],
  };
}

/** Names of its steps, sorted; what is no folder, a link to one included, is none. */
async function stepsOf(dir: string): Promise<readonly string[]> {
  const steps = path.join(dir, 'steps');
  if ((await lstat(steps).catch(() => null))?.isDirectory() !== true) return [];
  const entries = await readdir(steps, { withFileTypes: true }).catch(() => []);
  return entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])).toSorted();
}

/** As the trial collected them; a link in the place of the folder is for the archive to refuse. */
async function artifactsOf(dir: string, steps: readonly string[]): Promise<readonly KeptFile[]> {
  const all = await Promise.all(
    steps.map(async (step) => {
      const of = await namesIn(path.join(dir, 'steps', step));
      return filesOf(path.join(dir, 'steps', step), ['artifacts'], { of, to: '' }).map((file) => ({
        ...file,
        name: `artifacts/steps/${step}`,
      }));
    }),
  );
  return all.flat();
}

async function logsOf(dir: string, steps: readonly string[]): Promise<readonly KeptFile[]> {
  const all = await Promise.all(
    steps.map(async (step) => {
      const of = await namesIn(path.join(dir, 'steps', step));
      const logs = of.filter((name) => name !== 'artifacts').toSorted();
      return filesOf(path.join(dir, 'steps', step), logs, { of, to: `logs/steps/${step}/` });
    }),
  );
  return all.flat();
}

function filesOf(
  dir: string,
  wanted: readonly string[],
  { of, to }: { readonly of: readonly string[]; readonly to: string },
): readonly KeptFile[] {
  return wanted
    .filter((name) => of.includes(name))
    .map((name) => ({ name: `${to}${name}`, path: path.join(dir, name) }));
}

async function namesIn(dir: string): Promise<readonly string[]> {
  return await readdir(dir).catch((): string[] => []);
}

/** Of several documents, one per step, none is the rollout's. */
async function findTrajectory(dir: string, steps: readonly string[]): Promise<TrialOutput> {
  const places = ['', ...steps.map((name) => `steps/${name}/`)].map(
    (place) => `${place}agent/trajectory.json`,
  );
  const found: { readonly name: string; readonly entry: Stats }[] = [];
  for (const name of places) {
    const entry = await lstat(path.join(dir, name)).catch(() => null);
    if (entry !== null) found.push({ name, entry });
  }
  const [only] = found;
  if (only === undefined) return { trajectory: null, files: [], problems: [] };
  const file = path.join(dir, only.name);
  if (found.length > 1) return unusable(`${found.map(({ name }) => name).join(', ')}: several`);
  if (!only.entry.isFile()) return unusable(`${only.name}: it is no regular file`);
  if (only.entry.size > maxDocumentBytes)
    return { trajectory: null, files: [{ name: 'trajectory.json', path: file }], problems: [] };
  const read = await readDocument(file);
  return 'problem' in read
    ? unusable(`${only.name}: ${read.problem}`)
    : { trajectory: read.document, files: [], problems: [] };
}

function unusable(problem: string): TrialOutput {
  return { trajectory: null, files: [], problems: [`no trajectory of the rollout: ${problem}`] };
}

/** As it stands in the file: checked, but not coerced and not put in order. */
async function readDocument(
  file: string,
): Promise<
  { readonly document: Readonly<Record<string, unknown>> } | { readonly problem: string }
> {
  try {
    const document: unknown = JSON.parse(await readFile(file, 'utf8'));
    const [problem, ...more] = validateTrajectory(document);
    if (problem === undefined) return { document: document as Readonly<Record<string, unknown>> };
    return { problem: more.length === 0 ? problem : `${problem} (and ${more.length} more)` };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}
