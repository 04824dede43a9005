/** Servers whose rollouts are trials in local sandboxes, on either backend that runs such: what differs between them for a check that both have to pass. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { providePythonImage, whyNoPythonImage } from '../support/python-image.ts';
import { baseImage, whyNoRunc } from '../environments/local/local-bench.ts';

export const trialBackends = ['native', 'harbor'] as const;
export type TrialBackend = (typeof trialBackends)[number];

/** Why it cannot run here; null when it can. */
export function whyNoTrials(backend: TrialBackend): string | null {
  return backend === 'harbor' ? whyNoPythonImage() : whyNoRunc();
}

/** For rollouts that have nothing to do. */
export const quickTask = {
  instruction: 'Work.',
  test: 'echo 1 > /logs/verifier/reward.txt\n',
  network: 'no-network',
} as const;

const workflowsDir = path.join(import.meta.dirname, 'workflows');

/** A table of the configuration: the backend harbor with a workflow of `workflows/rollouts.py`, which has no grader: the tests of the task say the reward. */
export function harborTable(workflow: 'Quick' | 'Stubborn', tasksDir: string): string {
  return [
    ...['[backend]', 'kind = "harbor"', '[backend.harbor]', 'environment = "local"'],
    ...[`agent = "rollouts:${workflow}"`, `code_dir = "${workflowsDir}"`],
    ...[`tasks_dir = "${tasksDir}"`, ''],
  ].join('\n');
}

/** A task in a sandbox that a workflow can work in. */
export async function writeTrialTask(
  dir: string,
  task: {
    readonly backend: TrialBackend;
    readonly instruction: string;
    readonly test: string;
    readonly network?: 'public' | 'no-network';
  },
): Promise<void> {
  const { network = 'public' } = task;
  const image = task.backend === 'harbor' ? await providePythonImage() : baseImage;
  const environment = `[environment]\ndocker_image = "${image}"\nnetwork_mode = "${network}"\n`;
  await mkdir(path.join(dir, 'tests'), { recursive: true });
  await mkdir(path.join(dir, 'environment'));
  await writeFile(path.join(dir, 'task.toml'), environment);
  await writeFile(path.join(dir, 'instruction.md'), `${task.instruction}\n`);
  await writeFile(path.join(dir, 'tests/test.sh'), task.test);
}
