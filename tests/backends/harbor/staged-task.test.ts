import assert from 'node:assert/strict';
import { readFile, readdir, stat, symlink } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { stageTask, type StageQuery } from '../../../src/backends/harbor/staged-task.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { taskFolder, type FolderFiles } from '../../fakes/task-folder.ts';

const bare: FolderFiles = { 'task.toml': '', 'environment/Dockerfile': 'FROM x\n' };
const tested: FolderFiles = { ...bare, 'tests/test.sh': 'own\n' };
const grader = {
  class: { file: null, module: 'pkg.mod', name: 'G' },
  config: { strict: true },
} as const;
const prompt = [{ role: 'user', content: 'go' }];

interface Over {
  readonly taskMode?: 'template' | 'dataset';
  readonly hasGrader?: boolean;
  readonly isTemplate?: boolean;
  readonly prompt?: StageQuery['request']['prompt'];
}

async function staged(files: FolderFiles, over: Over, look: Look = () => Promise.resolve()) {
  await using task = await taskFolder(files);
  await using to = await taskFolder({});
  const query: StageQuery = {
    source: task.dir,
    to: path.join(to.dir, 'staged'),
    isTemplate: over.isTemplate ?? true,
    request: { id: 'r', prompt: over.prompt ?? prompt, label: 'secret label', metadata: { a: 1 } },
    options: {
      taskMode: over.taskMode ?? 'template',
      grader: over.hasGrader === true ? grader : null,
      sandboxPython: "py'thon",
    },
  };
  const before = await readdir(task.dir, { recursive: true });
  const result = await stageTask(query, never);
  assert.deepEqual(await readdir(task.dir, { recursive: true }), before, 'the source changed');
  await look((name) => readFile(path.join(result.dir, name), 'utf8'), result.dir);
  return result;
}

type Look = (read: (name: string) => Promise<string>, dir: string) => Promise<void>;

describe('a task that is staged for a rollout', () => {
  it('has the prompt as its instruction, and no reward without tests or a grader', async () => {
    const { rewardSource, warnings } = await staged(bare, {}, async (read) => {
      assert.deepEqual(JSON.parse(await read('instruction.md')), prompt);
      assert.equal(await read('environment/Dockerfile'), 'FROM x\n');
    });
    assert.deepEqual([rewardSource, warnings], ['none', []]);
  });

  it('gets tests that run the grader, with the label and without a key', async () => {
    const { rewardSource } = await staged(bare, { hasGrader: true }, async (read, dir) => {
      assert.match(
        await read('tests/test.sh'),
        /'py'\\''thon' -u \/opt\/slipway\/runner\/slipway_runner\/start\.py in-sandbox grader/,
      );
      assert.equal((await stat(path.join(dir, 'tests', 'test.sh'))).mode & 0o777, 0o755);
      assert.deepEqual(JSON.parse(await read('tests/container_input.json')), {
        ...{ version: 1, rollout_id: 'r', prompt, metadata: { a: 1 }, label: 'secret label' },
        ...{ grader: { module: 'pkg.mod', name: 'G' }, grader_config: { strict: true } },
      });
    });
    assert.equal(rewardSource, 'grader');
  });

  it('keeps its own tests, which win over a grader', async () => {
    const { rewardSource } = await staged(tested, { hasGrader: true }, async (read) =>
      assert.equal(await read('tests/test.sh'), 'own\n'),
    );
    assert.equal(rewardSource, 'task');
  });

  it('keeps its instruction in a dataset, whatever the prompt', async () => {
    const files = { ...tested, 'instruction.md': 'its own\n' };
    const { warnings } = await staged(files, { taskMode: 'dataset' }, async (read) =>
      assert.equal(await read('instruction.md'), 'its own\n'),
    );
    assert.deepEqual(warnings, []);
  });

  it('warns when the prompt replaces the instruction of another task than the template', async () => {
    const files = { ...tested, 'instruction.md': 'its own\n' };
    assert.equal((await staged(files, { isTemplate: false })).warnings.length, 1);
    assert.equal((await staged(files, { isTemplate: true })).warnings.length, 0);
  });

  for (const over of [{ prompt: [] }, { taskMode: 'dataset' }] as const)
    it(`needs an instruction where there is no prompt: ${JSON.stringify(over)}`, async () => {
      await assert.rejects(staged(tested, over), { code: 'REFERENCE_INVALID' });
    });

  for (const target of ['environment', 'task.toml', 'nowhere', '/etc/passwd'])
    it(`is refused with a link to ${target}`, async () => {
      await using task = await taskFolder({ ...bare, 'deep/file': '' });
      await using to = await taskFolder({});
      await symlink(target, path.join(task.dir, 'deep', 'link'));
      const query: StageQuery = {
        ...{ source: task.dir, to: path.join(to.dir, 'x'), isTemplate: true },
        request: { id: 'r', prompt, label: null, metadata: null },
        options: { taskMode: 'template', grader: null, sandboxPython: 'python3' },
      };
      await assert.rejects(stageTask(query, never), {
        code: 'TASK_CONFIG_INVALID',
        field: 'deep/link',
      });
    });

  it('is refused around the folder in which it is staged', async () => {
    await using task = await taskFolder(bare);
    const query: StageQuery = {
      ...{ source: task.dir, to: path.join(task.dir, 'data', 'rollouts', 'r'), isTemplate: true },
      request: { id: 'r', prompt, label: null, metadata: null },
      options: { taskMode: 'template', grader: null, sandboxPython: 'python3' },
    };
    await assert.rejects(stageTask(query, never), { code: 'TASK_CONFIG_INVALID' });
    assert.deepEqual((await readdir(task.dir)).sort(), ['environment', 'task.toml']);
  });
});
