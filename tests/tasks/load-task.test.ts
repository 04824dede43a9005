import assert from 'node:assert/strict';
import { mkdir, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { isRolloutError } from '../../src/core/errors.ts';
import { never } from '../../src/core/linked-abort.ts';
import { isTaskDir, loadTask } from '../../src/tasks/load-task.ts';
import { plainTask, taskFolder, without, type FolderFiles } from '../fakes/task-folder.ts';

const twoSteps: FolderFiles = {
  ...without(plainTask, 'instruction.md', 'tests/test.sh'),
  'task.toml': '[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n',
  'steps/one/instruction.md': 'One.\n',
  'steps/one/tests/test.sh': '#!/bin/bash\n',
  'steps/two/instruction.md': 'Two.\n',
  'steps/two/tests/test.sh': '#!/bin/bash\n',
};

interface Refusal {
  readonly code: string;
  readonly field: string;
  readonly message: RegExp;
}

const toml = (text: string | Uint8Array): FolderFiles => ({ ...plainTask, 'task.toml': text });

const refused: readonly (readonly [string, FolderFiles, Refusal])[] = [
  [
    'no task.toml',
    without(plainTask, 'task.toml'),
    { code: 'TASK_NOT_FOUND', field: 'task.toml', message: /holds no task\.toml/ },
  ],
  [
    'a task.toml that is no TOML',
    toml('[environment\ncpus = 1'),
    { code: 'TASK_CONFIG_UNREADABLE', field: 'task.toml', message: /line 1, column/ },
  ],
  [
    'a task.toml with a key twice',
    toml('source = "a"\nsource = "b"'),
    { code: 'TASK_CONFIG_UNREADABLE', field: 'task.toml', message: /line 2/ },
  ],
  [
    'a task.toml that is no text',
    toml(Uint8Array.of(0x61, 0xff, 0xfe)),
    { code: 'TASK_CONFIG_UNREADABLE', field: 'task.toml', message: /not UTF-8/ },
  ],
  [
    'a task.toml that is a folder',
    { ...without(plainTask, 'task.toml'), 'task.toml/x': '' },
    { code: 'TASK_CONFIG_UNREADABLE', field: 'task.toml', message: /cannot be read/ },
  ],
  [
    'a wrong field',
    toml('[environment]\ncpus = 0.5'),
    { code: 'TASK_CONFIG_INVALID', field: 'environment.cpus', message: /^environment\.cpus: / },
  ],
  [
    'two wrong fields',
    toml('[environment]\ncpus = 0.5\n[agent]\ntimeout_sec = "x"'),
    {
      code: 'TASK_CONFIG_INVALID',
      field: 'agent.timeout_sec',
      message: /^2 problems: agent\.timeout_sec: .*; environment\.cpus: /,
    },
  ],
  [
    'no instruction',
    without(plainTask, 'instruction.md'),
    { code: 'TASK_FILE_MISSING', field: 'instruction.md', message: /is missing/ },
  ],
  [
    'no tests',
    without(plainTask, 'tests/test.sh'),
    { code: 'TASK_TESTS_MISSING', field: 'tests/test.sh', message: /no tests\/test\.sh/ },
  ],
  [
    'tests for another system',
    { ...without(plainTask, 'tests/test.sh'), 'tests/test.bat': '' },
    { code: 'TASK_TESTS_MISSING', field: 'tests/test.sh', message: /no tests\/test\.sh/ },
  ],
  [
    'Linux tests on Windows',
    toml('[environment]\nos = "windows"'),
    { code: 'TASK_TESTS_MISSING', field: 'tests/test.bat', message: /no tests\/test\.bat/ },
  ],
  [
    'no folder for a step',
    without(twoSteps, 'steps/two/instruction.md', 'steps/two/tests/test.sh'),
    { code: 'TASK_FILE_MISSING', field: 'steps/two', message: /^2 problems: .*"two"/ },
  ],
  [
    'a step name too long for a folder',
    toml(`[[steps]]\nname = "${'n'.repeat(300)}"`),
    { code: 'TASK_FILE_MISSING', field: `steps/${'n'.repeat(300)}`, message: /folder of the step/ },
  ],
  [
    'no instruction for a step',
    without(twoSteps, 'steps/two/instruction.md'),
    { code: 'TASK_FILE_MISSING', field: 'steps/two/instruction.md', message: /is missing/ },
  ],
  [
    'no tests for a step',
    without(twoSteps, 'steps/one/tests/test.sh'),
    {
      code: 'TASK_TESTS_MISSING',
      field: 'steps/one/tests/test.sh',
      message: /no steps\/one\/tests\/test\.sh or tests\/test\.sh/,
    },
  ],
];

describe('a task folder is refused for', () => {
  for (const [what, files, { code, field, message }] of refused)
    it(what, async () => {
      await using task = await taskFolder(files);
      await assert.rejects(loadTask({ dir: task.dir, signal: never }), (error: unknown) => {
        assert.ok(isRolloutError(error));
        assert.equal(error.code, code);
        assert.equal(error.field, field);
        assert.match(error.message, message);
        assert.match(error.remedy ?? '', /^[A-Z].*\.$/);
        return true;
      });
      assert.equal(await isTaskDir(task.dir, { signal: never }), false);
    });

  it('an instruction that is no text, though it looks like a task', async () => {
    await using task = await taskFolder({ ...plainTask, 'instruction.md': Uint8Array.of(0xff) });
    assert.equal(await isTaskDir(task.dir, { signal: never }), true);
    await assert.rejects(loadTask({ dir: task.dir, signal: never }), {
      code: 'TASK_FILE_MISSING',
      field: 'instruction.md',
      message: /as text/,
    });
  });

  it('not being there, or not being a folder', async () => {
    await using task = await taskFolder(plainTask);
    for (const dir of [`${task.dir}/nowhere`, `${task.dir}/task.toml`, `${task.dir}/task.toml/x`])
      await assert.rejects(loadTask({ dir, signal: never }), { code: 'TASK_NOT_FOUND' });
  });
});

describe('a task folder loads', () => {
  it('as a plain task with every default', async () => {
    await using task = await taskFolder(plainTask, 'my-task');
    const loaded = await loadTask({ dir: task.dir, signal: never });
    assert.equal(loaded.dir, task.dir);
    assert.equal(loaded.name, 'my-task');
    assert.equal(loaded.shortName, 'my-task');
    assert.equal(loaded.package, null);
    assert.equal(loaded.instruction, 'Do it.\n');
    assert.equal(loaded.agent.timeoutMs, null);
    assert.deepEqual(loaded.environment.network, { mode: 'public' });
    assert.deepEqual(loaded.steps, []);
    assert.deepEqual(loaded.warnings, []);
  });

  it('without tests when verification is off', async () => {
    await using task = await taskFolder(without(plainTask, 'tests/test.sh'));
    const options = { signal: never, isVerificationEnabled: false };
    assert.equal((await loadTask({ dir: task.dir, ...options })).instruction, 'Do it.\n');
    assert.equal(await isTaskDir(task.dir, options), true);
    assert.equal(await isTaskDir(task.dir, { signal: never }), false);
  });

  it('without tests when its verifier is separate', async () => {
    const files = { 'task.toml': '[verifier]\nenvironment_mode = "separate"' };
    await using task = await taskFolder({ ...without(plainTask, 'tests/test.sh'), ...files });
    assert.equal((await loadTask({ dir: task.dir, signal: never })).verifier.mode, 'separate');
    assert.equal(await isTaskDir(task.dir, { signal: never }), true);
  });

  it('with shared tests for a step, and tells shared steps of a separate task', async () => {
    const files = {
      ...without(twoSteps, 'steps/one/tests/test.sh', 'steps/two/tests/test.sh'),
      'task.toml':
        '[verifier]\nenvironment_mode = "separate"\n[[steps]]\nname = "one"\n[steps.verifier]\nenvironment_mode = "shared"\n[[steps]]\nname = "two"\n',
    };
    await using lacking = await taskFolder(files);
    await assert.rejects(loadTask({ dir: lacking.dir, signal: never }), {
      code: 'TASK_TESTS_MISSING',
      field: 'steps/one/tests/test.sh',
    });
    await using task = await taskFolder({ ...files, 'tests/test.sh': '' });
    const { steps } = await loadTask({ dir: task.dir, signal: never });
    assert.deepEqual(
      steps.map(({ verifier }) => verifier.mode),
      ['shared', 'separate'],
    );
  });

  it('with a prebuilt image and nothing in environment/', async () => {
    const image = { 'task.toml': '[environment]\ndocker_image = "x"', 'environment/.gitkeep': '' };
    await using task = await taskFolder({
      ...without(plainTask, 'environment/Dockerfile'),
      ...image,
    });
    assert.equal(await isTaskDir(task.dir, { signal: never }), true);
    await rm(path.join(task.dir, 'environment'), { recursive: true });
    assert.equal(await isTaskDir(task.dir, { signal: never }), false);
  });

  it('through a link', async () => {
    await using task = await taskFolder(plainTask);
    const link = `${task.dir}-link`;
    await symlink(task.dir, link);
    assert.equal((await loadTask({ dir: link, signal: never })).instruction, 'Do it.\n');
  });

  it('with extra instructions behind the instruction of every step', async () => {
    await using task = await taskFolder({ ...twoSteps, 'extra.md': 'From a file.' });
    const { steps, instruction } = await loadTask({
      dir: task.dir,
      signal: never,
      extraInstructionPaths: [`${task.dir}/extra.md`],
      extraInstructions: ['Inline.'],
    });
    assert.equal(instruction, '');
    assert.deepEqual(
      steps.map((step) => step.instruction),
      ['One.\n\n\nFrom a file.\n\nInline.', 'Two.\n\n\nFrom a file.\n\nInline.'],
    );
  });

  it('with a warning for what is deprecated or doubtful, not for unknown keys', async () => {
    await using task = await taskFolder(
      toml(
        'artifacts = ["/a", "/a/b"]\nversion = "1.0"\n[environment]\nmemory = "1G"\nstorage = 5\ncpus = -1\nunknown = 1\n[agent]\ntimeout_sec = 0',
      ),
    );
    const { warnings, environment, agent } = await loadTask({ dir: task.dir, signal: never });
    assert.deepEqual(
      warnings.map((warning) => warning.split(':')[0]),
      [
        'version',
        'environment.memory',
        'environment.storage',
        'environment.cpus',
        'agent.timeout_sec',
        'artifacts',
      ],
    );
    assert.equal(environment.cpus, null);
    assert.equal(environment.storageMb, null);
    assert.equal(agent.timeoutMs, 0);
  });

  it('never after its signal fired', async () => {
    await using task = await taskFolder(plainTask);
    const reason = new Error('stopped');
    const signal = AbortSignal.abort(reason);
    await assert.rejects(loadTask({ dir: task.dir, signal }), reason);
    await assert.rejects(isTaskDir(task.dir, { signal }), reason);
  });

  it('and a broken sibling does not matter', async () => {
    await using task = await taskFolder(plainTask);
    await mkdir(path.join(task.dir, '..', 'broken'));
    assert.equal(await isTaskDir(task.dir, { signal: never }), true);
    assert.equal(await isTaskDir(path.join(task.dir, '..', 'broken'), { signal: never }), false);
  });
});
