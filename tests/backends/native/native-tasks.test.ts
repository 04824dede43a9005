import assert from 'node:assert/strict';
import os from 'node:os';
import path from 'node:path';
import { readHarborTask } from '../../../src/backends/native/harbor-task.ts';
import { configOf, lines, refused, type Fields, type Line } from './contract-lines.ts';
import { HeardHooks, nativeBench, requestFor } from './native-bench.ts';

const taskOf = (metadata: Fields): readonly [unknown[], string] => {
  const { entry, warnings } = readHarborTask(metadata);
  const { path: folder, git_url, git_commit_id, name, ref } = entry;
  return [[folder, git_url, git_commit_id, name, ref], warnings.join('; ')];
};
const isRead =
  (metadata: Fields, expected: readonly unknown[], warns: RegExp | null = null) =>
  (): void => {
    const [entry, warnings] = taskOf(metadata);
    assert.deepEqual(entry, expected);
    if (warns === null) assert.equal(warnings, '');
    else assert.match(warnings, warns);
    assert.doesNotMatch(warnings, /secret|https?:/);
  };
const isNoTask = (metadata: Fields, field: string) => (): void => {
  assert.throws(() => readHarborTask(metadata), { code: 'REFERENCE_INVALID', field });
};
const git = { harbor_task: 'x', git_url: 'https://user:secret@host/repository' };
const reference = 'metadata.harbor_task';

lines('metadata.harbor_task', [
  ['./task is a folder', isRead({ harbor_task: './a' }, ['./a', null, null, null, null])],
  [
    '/task is a folder, though git_url is set',
    isRead({ ...git, harbor_task: '/a' }, ['/a', null, null, null, null]),
  ],
  ['../task is a folder', isRead({ harbor_task: '../a' }, ['../a', null, null, null, null])],
  [
    './task and ../task begin at the folder of the configuration',
    () => {
      const located = ['./a', '../a', '.', '/b/../a', '~/a'].map(
        (task) => readHarborTask({ harbor_task: task }, { baseDir: '/etc/slipway' }).entry.path,
      );
      assert.deepEqual(located, [
        ...['/etc/slipway/a', '/etc/a', '/etc/slipway', '/a', path.join(os.homedir(), 'a')],
      ]);
    },
  ],
  [
    './task of a rollout begins there too',
    async () => {
      await using bench = await nativeBench();
      const request = requestFor(`./${path.basename(bench.taskDir)}`);
      const { errMessage } = await bench.backend.execute(request, new HeardHooks()).result;
      assert.equal(errMessage, null);
    },
  ],
  [
    '~/task is a folder below the home folder',
    isRead({ harbor_task: '~/a' }, [path.join(os.homedir(), 'a'), null, null, null, null]),
  ],
  [
    'git_url, task_path and git_commit_id are a pinned task of a repository: no warning',
    isRead({ ...git, task_path: 't', git_commit_id: 'abc' }, ['t', git.git_url, 'abc', null, null]),
  ],
  [
    'git_url without task_path is the root of the repository',
    isRead({ ...git, git_commit_id: 'abc' }, ['.', git.git_url, 'abc', null, null]),
  ],
  [
    'git_url without git_commit_id warns, by the name of the key and never the address',
    isRead(git, ['.', git.git_url, null, null, null], /set git_commit_id/),
  ],
  [
    'git_url with an empty git_commit_id warns',
    isRead(
      { ...git, git_commit_id: '' },
      ['.', git.git_url, null, null, null],
      /set git_commit_id/,
    ),
  ],
  [
    'git_url with a blank git_commit_id warns',
    isRead(
      { ...git, git_commit_id: ' \t' },
      ['.', git.git_url, null, null, null],
      /set git_commit_id/,
    ),
  ],
  ['git_url needs a harbor_task beside it', isNoTask({ git_url: 'https://h/r' }, reference)],
  [
    'git_commit_id that is no text is refused, not passed over',
    isNoTask({ ...git, git_commit_id: 12 }, 'metadata.git_commit_id'),
  ],
  [
    'task_path that is no text is refused, not passed over',
    isNoTask({ ...git, task_path: ['a'] }, 'metadata.task_path'),
  ],
  [
    'git_url that is no text is refused, not passed over',
    isNoTask({ harbor_task: 'o/n', git_url: 7 }, 'metadata.git_url'),
  ],
  [
    'org/name@3 is a pinned package: no warning',
    isRead({ harbor_task: 'o/n@3' }, [null, null, null, 'o/n', '3']),
  ],
  [
    'org/name@sha256:… is a pinned package: no warning',
    isRead({ harbor_task: 'o/n@sha256:ab' }, [null, null, null, 'o/n', 'sha256:ab']),
  ],
  [
    'org/name is split at the first @',
    isRead({ harbor_task: 'o/n@a@b' }, [null, null, null, 'o/n', 'a@b']),
  ],
  [
    'org/name is the latest and warns',
    isRead({ harbor_task: 'o/n' }, [null, null, null, 'o/n', 'latest'], /o\/n@REF/),
  ],
  [
    'org/name@ is the latest and warns',
    isRead({ harbor_task: 'o/n@' }, [null, null, null, 'o/n', 'latest'], /o\/n@REF/),
  ],
  [
    'org/name@latest warns',
    isRead({ harbor_task: 'o/n@latest' }, [null, null, null, 'o/n', 'latest'], /o\/n@REF/),
  ],
  ...[undefined, null, '', 0, false].map((value): Line => [
    `that is ${JSON.stringify(value)} names no task`,
    isNoTask({ harbor_task: value }, reference),
  ]),
  ...['name', ' ', 3, { a: 1 }].map((value): Line => [
    `that is ${JSON.stringify(value)} is refused`,
    isNoTask({ harbor_task: value }, reference),
  ]),
]);

const modelOf = (options: Fields, metadata: Fields = {}) =>
  configOf(options, { metadata: { harbor_task: '/task', ...metadata } }).agent.model_name;
const tabled = { agent_config: { name: 'terminus-2', model_name: 'openai/table' } };

lines('the model of a rollout', [
  [
    'is openai/osmosis-rollout where nobody names one',
    () => {
      assert.equal(modelOf({}), 'openai/osmosis-rollout');
    },
  ],
  [
    'is that of agent_config before the default',
    () => {
      assert.equal(modelOf(tabled), 'openai/table');
    },
  ],
  [
    'is that of the option model before agent_config',
    () => {
      assert.equal(modelOf({ ...tabled, model: 'openai/option' }), 'openai/option');
    },
  ],
  [
    'is harbor_model of the row before everything',
    () => {
      assert.equal(
        modelOf({ ...tabled, model: 'openai/option' }, { harbor_model: 'openai/row' }),
        'openai/row',
      );
    },
  ],
  ...[null, '', ' ', 0, false, 'gpt', 'openai/', 'openai/ '].map((value): Line => [
    `harbor_model ${JSON.stringify(value)} is a mistake of the row, never the default`,
    () => {
      assert.throws(() => modelOf(tabled, { harbor_model: value }), {
        code: 'REFERENCE_INVALID',
        field: 'metadata.harbor_model',
      });
    },
  ]),
  [
    'without the prefix openai/ is refused at construction',
    refused({ model: 'gpt' }, /model: must be openai\/NAME/),
  ],
  [
    'without the prefix is refused in agent_config, too',
    refused(
      { agent_config: { name: 'terminus-2', model_name: 'anthropic/x' } },
      /model: must be openai/,
    ),
  ],
  [
    'of the oracle may have any name, for it calls none',
    () => {
      assert.equal(modelOf({ agent_config: { name: 'oracle', model_name: 'x' } }), 'x');
    },
  ],
]);
