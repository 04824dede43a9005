/**
 * A task as one rollout gets it: a copy of its folder with the rollout's prompt, and with a verifier where the task has none. The source is never
 * changed, and a link in it is refused: it would bring a file of this machine into a sandbox.
 */
import { constants } from 'node:fs';
import { chmod, copyFile, lstat, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { RolloutError } from '../../core/errors.ts';
import { isFile } from '../../tasks/file-presence.ts';
import type { ExecutionRequest } from '../execution-backend.ts';
import type { HarborOptions, UserPart } from './harbor-options.ts';
import { inSandboxCommand } from './sandbox-layers.ts';

export interface StagedTask {
  /** Absolute; named as the source is. */
  readonly dir: string;
  /** What says the reward: the task's own tests win over a grader. */
  readonly rewardSource: 'task' | 'grader' | 'none';
  readonly warnings: readonly string[];
}

export interface StageQuery {
  /** Absolute folder of the task. */
  readonly source: string;
  /** Absolute; what is in it is removed. */
  readonly to: string;
  readonly isTemplate: boolean;
  readonly request: Pick<ExecutionRequest, 'id' | 'prompt' | 'label' | 'metadata'>;
  readonly options: Pick<HarborOptions, 'taskMode' | 'grader' | 'sandboxPython'>;
}

/** TASK_CONFIG_INVALID, REFERENCE_INVALID, or the reason of `signal`. */
export async function stageTask(query: StageQuery, signal: AbortSignal): Promise<StagedTask> {
  const { source, to, options, request } = query;
  if (isBelow(source, to)) throw aroundServer(source);
  await rm(to, { recursive: true, force: true });
  const dir = path.join(to, path.basename(source));
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await copyTask({ from: source, to: dir, root: source }, signal);
  const warnings = await writePrompt(dir, query);
  if (await isFile(path.join(dir, 'tests', 'test.sh')))
    return { dir, rewardSource: 'task', warnings };
  if (await hasVerifierInSteps(dir)) return { dir, rewardSource: 'task', warnings };
  const { grader, sandboxPython } = options;
  const script =
    grader === null
      ? '#!/bin/sh\nexit 0\n'
      : `#!/bin/sh\n${inSandboxCommand(sandboxPython, 'grader')}\n`;
  await mkdir(path.join(dir, 'tests'), { recursive: true });
  await writeFile(path.join(dir, 'tests', 'test.sh'), script, { mode: 0o755 });
  await chmod(path.join(dir, 'tests', 'test.sh'), 0o755);
  if (grader === null) return { dir, rewardSource: 'none', warnings };
  await writeFile(
    path.join(dir, 'tests', 'container_input.json'),
    JSON.stringify({
      ...containerInput(request),
      label: request.label,
      ...partInput('grader', grader),
    }),
    { mode: 0o644 },
  );
  return { dir, rewardSource: 'grader', warnings };
}

/** What both sides of the sandbox read, without the label. */
export function containerInput({
  id,
  prompt,
  metadata,
}: Pick<ExecutionRequest, 'id' | 'prompt' | 'metadata'>): Readonly<Record<string, unknown>> {
  return { version: 1, rollout_id: id, prompt, metadata };
}

export function partInput(name: 'workflow' | 'grader', part: UserPart) {
  const { module, name: className } = part.class;
  return { [name]: { module, name: className }, [`${name}_config`]: part.config };
}

async function copyTask(
  at: { readonly from: string; readonly to: string; readonly root: string },
  signal: AbortSignal,
): Promise<void> {
  const { from, to, root } = at;
  for (const entry of await readdir(from, { withFileTypes: true })) {
    signal.throwIfAborted();
    const [source, target] = [path.join(from, entry.name), path.join(to, entry.name)];
    if (entry.isDirectory()) {
      await mkdir(target, { recursive: true });
      await copyTask({ from: source, to: target, root }, signal);
      await chmod(target, (await lstat(source)).mode & 0o777);
    } else if (entry.isFile()) await copyFile(source, target, constants.COPYFILE_FICLONE);
    else throw refused(path.relative(root, source), entry.isSymbolicLink());
  }
}

function refused(file: string, isLink: boolean): RolloutError {
  const what = isLink ? 'a link' : 'neither a file nor a folder';
  return new RolloutError('TASK_CONFIG_INVALID', `the task holds ${what}: ${file}`, {
    phase: 'resolve',
    field: file,
    remedy: 'Put a copy of the file in its place.',
  });
}

function isBelow(folder: string, file: string): boolean {
  const relative = path.relative(folder, file);
  return relative !== '..' && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative);
}

/** Its copy would be copied too, without end. */
function aroundServer(source: string): RolloutError {
  return new RolloutError('TASK_CONFIG_INVALID', 'the folder of the server is inside the task', {
    phase: 'resolve',
    field: source,
    remedy: 'Set data_dir to a folder outside of the tasks.',
  });
}

async function writePrompt(dir: string, query: StageQuery): Promise<readonly string[]> {
  const { isTemplate, request, options } = query;
  const file = path.join(dir, 'instruction.md');
  const hasInstruction = await isFile(file);
  if (options.taskMode === 'dataset' || request.prompt.length === 0) {
    if (hasInstruction || (await stepsOf(dir)).length > 0) return [];
    throw new RolloutError('REFERENCE_INVALID', 'there is neither a prompt nor an instruction', {
      phase: 'resolve',
      field: 'initial_messages',
      remedy: 'Send initial_messages, or write instruction.md in the task.',
    });
  }
  await writeFile(file, JSON.stringify(request.prompt));
  return hasInstruction && !isTemplate
    ? ['the instruction of the task is replaced by the prompt of the row']
    : [];
}

async function stepsOf(dir: string): Promise<readonly string[]> {
  return await readdir(path.join(dir, 'steps')).catch((): string[] => []);
}

async function hasVerifierInSteps(dir: string): Promise<boolean> {
  for (const name of await stepsOf(dir))
    if (await isFile(path.join(dir, 'steps', name, 'tests', 'test.sh'))) return true;
  return false;
}
