import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import { checkTask } from '../../src/tasks/check-task.ts';
import { plainTask, taskFolder, without, type FolderFiles } from '../fakes/task-folder.ts';

async function findingsOf(files: FolderFiles): Promise<readonly string[]> {
  await using task = await taskFolder(files);
  const findings = await checkTask(task.dir, never);
  for (const { remedy, message } of findings) {
    assert.match(remedy, /^[A-Z].*\.$/s);
    assert.ok(!message.includes('    at '), 'no stack trace');
  }
  return findings.map(({ severity, code, field }) => `${severity} ${code} ${field}`);
}

const toml = (text: string): FolderFiles => ({ ...plainTask, 'task.toml': text });
const oneStep = (text = '[[steps]]\nname = "one"\n'): FolderFiles => ({
  ...without(toml(text), 'instruction.md'),
  'steps/one/instruction.md': 'One.',
});

const trajectory = JSON.stringify({
  agent: { name: 'a', version: '1' },
  steps: [{ step_id: 1, source: 'user', message: '' }],
});

const rows: readonly (readonly [string, FolderFiles, readonly string[]])[] = [
  ['nothing for a good task', plainTask, []],
  ['nothing for a good task in steps', oneStep(), []],
  ['one error for what is no TOML', toml('='), ['error TASK_CONFIG_UNREADABLE task.toml']],
  ['one error for no task.toml', {}, ['error TASK_NOT_FOUND task.toml']],
  [
    'every wrong field',
    toml('[environment]\ncpus = 0.5\n[agent]\nuser = []\nallowed_hosts = []'),
    [
      'error TASK_CONFIG_INVALID agent.user',
      'error TASK_CONFIG_INVALID agent.allowed_hosts',
      'error TASK_CONFIG_INVALID environment.cpus',
    ],
  ],
  [
    'every missing file',
    { 'task.toml': '' },
    [
      'error TASK_FILE_MISSING instruction.md',
      'error TASK_TESTS_MISSING tests/test.sh',
      'error TASK_FILE_MISSING environment',
      'warning TASK_SOLUTION_MISSING solution',
    ],
  ],
  [
    'an environment that nothing defines',
    { ...without(plainTask, 'environment/Dockerfile'), 'environment/docker-compose.yml': '' },
    [
      'error TASK_ENVIRONMENT_UNDEFINED environment.docker_image',
      'warning FILE_IGNORED environment/docker-compose.yml',
    ],
  ],
  [
    'a separate verifier that nothing defines',
    toml('[verifier.environment]\ncpus = 1'),
    ['error TASK_ENVIRONMENT_UNDEFINED tests'],
  ],
  [
    'no fault in a separate verifier with an image',
    toml('[verifier.environment]\ndocker_image = "x"'),
    [],
  ],
  [
    'a separate step that nothing defines',
    {
      ...oneStep('[[steps]]\nname = "one"\n[steps.verifier.environment]\ncpus = 1\n'),
      'steps/one/tests/fixture': '',
      'tests/Dockerfile': '',
    },
    ['error TASK_ENVIRONMENT_UNDEFINED steps/one/tests'],
  ],
  [
    'an empty instruction',
    { ...plainTask, 'instruction.md': '# canary\n\n' },
    ['warning INSTRUCTION_EMPTY instruction.md'],
  ],
  [
    'an instruction that is no text, and what else there is',
    { ...without(plainTask, 'solution/solve.sh'), 'instruction.md': Uint8Array.of(0xff) },
    ['error TASK_FILE_MISSING instruction.md', 'warning TASK_SOLUTION_MISSING solution'],
  ],
  [
    'scripts with Windows line ends',
    {
      ...plainTask,
      'tests/test.sh': '#!/bin/bash\r\ntrue\r\n',
      'solution/solve.sh': '#!/bin/sh\r\n',
    },
    ['warning SCRIPT_LINE_ENDS solution/solve.sh', 'warning SCRIPT_LINE_ENDS tests/test.sh'],
  ],
  [
    'a trajectory that is none',
    { ...plainTask, 'trajectory.json': '[]' },
    ['error TASK_TRAJECTORY_INVALID trajectory.json'],
  ],
  [
    'a trajectory that is no JSON',
    { ...plainTask, 'trajectory.json': '{' },
    ['error TASK_TRAJECTORY_INVALID trajectory.json'],
  ],
  [
    'a trajectory without steps',
    { ...plainTask, 'trajectory.json': '{"agent": {"name": "a", "version": "1"}, "steps": []}' },
    ['error TASK_TRAJECTORY_INVALID trajectory.json'],
  ],
  ['no fault in a trajectory', { ...plainTask, 'trajectory.json': trajectory }, []],
  [
    'files that steps hide',
    { ...oneStep(), 'instruction.md': 'Root.', 'steps/two/instruction.md': 'Two.' },
    ['warning FILE_IGNORED instruction.md', 'warning FILE_IGNORED steps/two'],
  ],
  [
    'deprecated and misspelt fields',
    toml(
      '[environment]\nmemory = "1G"\nallow_internet = true\ncpu = 1\n[verifier]\ntimeout_sec = -1',
    ),
    [
      'warning FIELD_DEPRECATED environment.allow_internet',
      'warning FIELD_DEPRECATED environment.memory',
      'warning FIELD_DOUBTFUL verifier.timeout_sec',
      'warning FIELD_UNKNOWN environment.cpu',
    ],
  ],
  [
    'artifacts that overlap, once for the task and once for what a step adds',
    oneStep('artifacts = ["/a", "/a/b"]\n[[steps]]\nname = "one"\nartifacts = ["/a/c"]\n'),
    ['warning ARTIFACTS_OVERLAP artifacts', 'warning ARTIFACTS_OVERLAP steps[0].artifacts'],
  ],
];

describe('checking a task finds', () => {
  for (const [what, files, expected] of rows)
    it(what, async () => {
      assert.deepEqual(await findingsOf(files), expected);
    });

  it('one error for a folder that is not there', async () => {
    await using task = await taskFolder({});
    const findings = await checkTask(`${task.dir}/nowhere`, never);
    assert.deepEqual(
      findings.map(({ code }) => code),
      ['TASK_NOT_FOUND'],
    );
  });

  it('nothing any more when its signal fired', async () => {
    await using task = await taskFolder(plainTask);
    const reason = new Error('stopped');
    await assert.rejects(checkTask(task.dir, AbortSignal.abort(reason)), reason);
  });
});
