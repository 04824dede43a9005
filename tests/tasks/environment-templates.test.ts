import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import { referencedVariables, resolveTemplates } from '../../src/tasks/environment-templates.ts';
import { loadTask } from '../../src/tasks/load-task.ts';
import { plainTask, taskFolder } from '../fakes/task-folder.ts';

const variables = { SET: 'value', EMPTY: '', UNSET: undefined };

describe('a template', () => {
  const rows: readonly (readonly [string, string])[] = [
    ['${SET}', 'value'],
    ['${EMPTY}', ''],
    ['${EMPTY:-d}', ''],
    ['${NOPE:-d}', 'd'],
    ['${NOPE:-}', ''],
    ['${NOPE:-a}b:-c\nd}', 'a}b:-c\nd'],
    ['${UNSET:-d}', 'd'],
    ['${toString:-d}', 'd'],
    ['prefix_${SET}_suffix', 'prefix_${SET}_suffix'],
    ['${SET} ', '${SET} '],
    ['$SET', '$SET'],
    ['{SET}', '{SET}'],
    ['${', '${'],
    ['${}', '${}'],
    ['${SET:d}', '${SET:d}'],
    ['', ''],
  ];
  for (const [value, resolved] of rows)
    it(`${JSON.stringify(value)} gives ${JSON.stringify(resolved)}`, () => {
      assert.deepEqual(resolveTemplates({ KEY: value }, variables, 'environment.env'), {
        KEY: resolved,
      });
    });

  it('of an unset variable without default names it and the field', () => {
    for (const name of ['NOPE', 'UNSET', 'toString'])
      assert.throws(() => resolveTemplates({ KEY: `\${${name}}` }, variables, 'verifier.env'), {
        code: 'VARIABLE_UNSET',
        field: 'verifier.env.KEY',
        message: new RegExp(name),
      });
  });
});

describe('the variables of a task', () => {
  it('come from every env table, with the path of each, and an inherited environment once', async () => {
    await using task = await taskFolder({
      ...plainTask,
      'tests/Dockerfile': 'FROM x\n',
      'steps/one/instruction.md': 'One.',
      'steps/two/instruction.md': 'Two.',
      'task.toml': `
        [environment.env]
        A = "\${A}"
        LITERAL = "a\${B}"
        [verifier]
        environment_mode = "separate"
        [verifier.env]
        C = "\${C:-c}"
        [solution.env]
        D = "\${D}"
        [[steps]]
        name = "one"
        [[steps]]
        name = "two"
        [steps.verifier.env]
        E = "\${E}"
        [steps.verifier.environment.env]
        F = "\${F}"
      `,
    });
    const loaded = await loadTask({ dir: task.dir, signal: never });
    assert.deepEqual(
      referencedVariables(loaded).map(
        ({ field, variable, hasDefault, scope }) => `${field} ${variable} ${hasDefault} ${scope}`,
      ),
      [
        'environment.env.A A false environment',
        'verifier.env.C C true verifier',
        'steps[1].verifier.env.E E false verifier',
        'steps[1].verifier.environment.env.F F false verifier-environment',
        'solution.env.D D false solution',
      ],
    );
  });
});
