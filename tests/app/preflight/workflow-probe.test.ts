/** Classes of the backend `harbor` as preflight loads them: here a folder stands for the sandbox, and the machine's Python for its own. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { WorkflowProbe } from '../../../src/app/preflight/workflow-probe.ts';
import type { Verdict } from '../../../src/app/preflight/verdict.ts';
import { composeApp } from '../../../src/app/compose.ts';
import { readServeConfig } from '../../../src/config/serve/read-serve-config.ts';
import { isRolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import type { Environment } from '../../../src/environments/environment.ts';
import { taskFolder, type FolderFiles } from '../../fakes/task-folder.ts';
import { writeWheels } from '../../fakes/wheels.ts';

/** Absolute paths of commands and copies begin in `root`. */
function folderAsSandbox(root: string): Environment {
  const inside = (text: string): string => text.replaceAll('/tmp/slipway-preflight', `${root}/tmp`);
  const environment: Pick<Environment, 'uploadDir' | 'exec'> = {
    uploadDir: async (source, target) => {
      await mkdir(inside(target), { recursive: true });
      await cp(source, inside(target), { recursive: true });
    },
    exec: ({ command }) =>
      new Promise((resolve) => {
        execFile('sh', ['-c', inside(command)], { cwd: root }, (error, stdout, stderr) =>
          resolve({ exitCode: error === null ? 0 : 1, stdout, stderr, isTruncated: false }),
        );
      }),
  };
  return environment as Environment;
}

async function looked(
  files: FolderFiles,
  settings: Readonly<Record<string, unknown>>,
): Promise<Verdict | { readonly code: string; readonly message: string }> {
  await using folder = await taskFolder({
    ...files,
    'slipway.json': JSON.stringify({
      backend: { kind: 'harbor', harbor: { tasks_dir: 'task', ...settings } },
    }),
    'sandbox/.keep': '',
    'wheels/.keep': '',
  });
  writeWheels(path.join(folder.dir, 'wheels'), [{ name: 'kept', version: '1' }]);
  const ports = await composeApp({ ...process.env, SLIPWAY_STATE_DIR: folder.dir }, folder.dir);
  const config = await readServeConfig({ '--config': 'slipway.json' }, ports.machine);
  const probe = await WorkflowProbe.open(config, { ports, scratchDir: folder.dir });
  assert.ok(probe !== null);
  const sandbox = folderAsSandbox(path.join(folder.dir, 'sandbox'));
  return await probe.ask(sandbox, never).catch((error: unknown) => {
    if (!isRolloutError(error)) throw error;
    return { code: error.code, message: error.message };
  });
}

const work = (first: string): string => `${first}\nclass Work:\n    async def run(self, ctx):\n        pass\n`; // prettier-ignore
const parts = { agent: 'mine.flow:Work', grader: 'mine.judge:Grade', code_dir: 'project' };
const grade = 'print("loaded")\nclass Grade:\n    async def grade(self, ctx):\n        pass\n';

describe('classes that run in a sandbox', { concurrency: 2 }, () => {
  it('are loaded there with the packages that the server would install', async () => {
    const files = {
      'project/src/mine/flow.py': work('import kept'),
      'project/src/mine/judge.py': grade,
    };
    const requirements = ['./wheels/kept-1-py3-none-any.whl'];
    const found = await looked(files, { ...parts, requirements });
    assert.deepEqual(found, {
      ...{ status: 'ok', summary: 'workflow and grader can be loaded in the sandbox' },
      ...{ code: null, field: null, remedy: null, detail: null },
    });
  });

  const rows = [
    [
      'that lack a package are not looked at, and its name is told',
      { 'project/mine/flow.py': work('import kept.part'), 'project/mine/judge.py': grade },
      { status: 'warning', field: 'backend.harbor.requirements', summary: /does not have kept$/ },
    ],
    [
      'that fail while they are loaded are told with the last line of Python',
      {
        'project/mine/flow.py': work('import kept'),
        'project/mine/judge.py': `one = 1\none / 0\n${grade}`,
      },
      { code: 'WORKFLOW_INVALID', message: /grader .*ZeroDivisionError.*judge\.py, line 2/s },
    ],
    [
      'that are not there are no missing package',
      { 'project/mine/judge.py': grade },
      { code: 'WORKFLOW_INVALID', message: /workflow .*No module named 'mine\.flow'/s },
    ],
  ] as const;
  for (const [title, files, expected] of rows)
    it(title, async () => {
      const found = await looked(files, parts);
      for (const [key, wanted] of Object.entries(expected)) {
        const value = String((found as Readonly<Record<string, unknown>>)[key]);
        if (wanted instanceof RegExp) assert.match(value, wanted);
        else assert.equal(value, wanted);
      }
    });
});
