import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import { loadTask } from '../../src/tasks/load-task.ts';
import type { VerifierSection } from '../../src/tasks/task.ts';
import { plainTask, taskFolder } from '../fakes/task-folder.ts';

async function verifiers(toml: string): Promise<readonly VerifierSection[]> {
  await using task = await taskFolder({
    ...plainTask,
    'steps/one/instruction.md': 'One.',
    'task.toml': toml,
  });
  const { verifier, steps } = await loadTask({ dir: task.dir, signal: never });
  return [verifier, ...steps.map((step) => step.verifier)];
}

// Of the task and its one step: shared, or separate in the task's own table, the step's, or a copy of [environment] (by CPUs).
const rows: readonly (readonly [string, string, readonly string[]])[] = [
  ['nothing is shared', '', ['shared']],
  ['a table alone is separate', '[verifier.environment]\ncpus = 2', ['separate 2']],
  [
    'separate without a table is a copy',
    '[environment]\ncpus = 1\n[verifier]\nenvironment_mode = "separate"',
    ['separate 1 inherited'],
  ],
  [
    'a step inherits separate and its table',
    '[verifier.environment]\ncpus = 2\n[[steps]]\nname = "one"',
    ['separate 2', 'separate 2'],
  ],
  [
    'a step inherits a copy',
    '[environment]\ncpus = 1\n[verifier]\nenvironment_mode = "separate"\n[[steps]]\nname = "one"',
    ['separate 1 inherited', 'separate 1 inherited'],
  ],
  [
    'a shared step beats a separate task',
    '[verifier.environment]\ncpus = 2\n[[steps]]\nname = "one"\n[steps.verifier]\nenvironment_mode = "shared"',
    ['separate 2', 'shared'],
  ],
  [
    'a table of a step alone is separate',
    '[[steps]]\nname = "one"\n[steps.verifier.environment]\ncpus = 3',
    ['shared', 'separate 3'],
  ],
  [
    'a table of a step beats that of the task',
    '[verifier.environment]\ncpus = 2\n[[steps]]\nname = "one"\n[steps.verifier.environment]\ncpus = 3',
    ['separate 2', 'separate 3'],
  ],
  [
    'a separate step without a table in a shared task copies',
    '[environment]\ncpus = 1\n[[steps]]\nname = "one"\n[steps.verifier]\nenvironment_mode = "separate"',
    ['shared', 'separate 1 inherited'],
  ],
];

describe('the mode of a verifier:', () => {
  for (const [what, toml, expected] of rows)
    it(what, async () => {
      const actual = (await verifiers(toml)).map(({ mode, environment, isEnvironmentInherited }) =>
        environment === null
          ? mode
          : `${mode} ${environment.cpus}${isEnvironmentInherited ? ' inherited' : ''}`,
      );
      assert.deepEqual(actual, expected);
    });

  it('a step never inherits the timeout of the task', async () => {
    const [task, step] = await verifiers('[verifier]\ntimeout_sec = 5\n[[steps]]\nname = "one"');
    assert.equal(task?.timeoutMs, 5000);
    assert.equal(step?.timeoutMs, 600_000);
  });
});
