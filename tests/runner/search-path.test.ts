/** Where the runner finds its modules, and the user's code its own. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { describe, it } from 'node:test';
import { z } from 'zod';
import { runnerPackageDir, runnerProgram } from '../../src/runner/interpreter.ts';
import { RunnerProcess } from '../../src/runner/runner-process.ts';
import { runnerReportSchema } from '../../src/wire/runner/runner-messages.ts';
import { taskFolder } from '../fakes/task-folder.ts';

const report = runnerReportSchema(z.string());
const broken = 'raise RuntimeError("a module of the user in place of one of the runner")\n';
/** What the runner uses, and names of its own modules, as files of the user. */
const hiding = Object.fromEntries(
  ['json', 'asyncio', 'socket', 'resource', 'ctypes', 'loading', 'samples'].map((name) => [
    `${name}.py`,
    broken,
  ]),
);
const flow = (word: string): string => `
import json

import process

WORD = "${word}"

class Workflow:
    def __init__(self, config):
        pass

    async def run(self, ctx):
        return [{"role": "assistant", "content": json.dumps([WORD, process.WORD])}]
`;

interface Settings {
  readonly cwd: string;
  readonly folders: readonly string[];
}

async function said({ cwd, folders }: Settings): Promise<unknown> {
  const workflow = { file: null, module: 'flow', name: 'Workflow' };
  const runner = new RunnerProcess({
    role: 'workflow',
    interpreter: { python: 'python3', path: folders },
    settings: { workflow, workflowConfig: { table: {} }, grader: null, graderConfig: null },
    variables: process.env,
    cwd,
  });
  try {
    const order = {
      ...{ kind: 'workflow', rolloutId: 'r', prompt: [], metadata: null, model: null },
      artifactsDir: null,
    };
    const { value, failure } = await runner.carryOut({ order, report });
    assert.equal(failure, null);
    const sample = JSON.parse(value ?? '') as { readonly messages: { readonly content: string }[] };
    return JSON.parse(sample.messages[0]?.content ?? '');
  } finally {
    await runner.terminate();
  }
}

describe('modules of a runner', () => {
  it('are its own and those of the library, whatever files are in the working folder and on its path', async () => {
    await using cwd = await taskFolder({ ...hiding, 'flow.py': flow('working folder') });
    await using own = await taskFolder({
      ...hiding,
      'flow.py': flow('path'),
      'process.py': 'WORD = "path"\n',
    });
    const settings = { cwd: cwd.dir, folders: [own.dir] };
    assert.deepEqual(await said(settings), ['working folder', 'path']);
  });

  const order = ['flow', 'only_here'] as const;
  it('are looked for in the working folder of a sandbox after everything else', async () => {
    const print = (word: string): string => `print("${word}")\n`;
    await using cwd = await taskFolder({
      ...hiding,
      ...{ 'flow.py': print('working folder'), 'only_here.py': print('only here') },
    });
    await using code = await taskFolder({ ...hiding, 'flow.py': print('code') });
    const heard = order.map((module) => {
      // The input names a class that is not there: its module is imported before that is said.
      const input = { version: 1, rollout_id: 'r', prompt: [], metadata: {} };
      const document = JSON.stringify({
        ...{ ...input, workflow: { module, name: 'C' }, workflow_config: {} },
      });
      const script = `mkdir -p logs/agent && printf %s '${document}' > logs/agent/container_input.json && exec python3 '${path.join(runnerPackageDir, runnerProgram)}' in-sandbox workflow`;
      const { stdout, stderr } = spawnSync('sh', ['-c', script], {
        cwd: cwd.dir,
        env: {
          ...process.env,
          // Images put a colon at its end, which names the working folder.
          PYTHONPATH: [runnerPackageDir, code.dir, ''].join(path.delimiter),
          SLIPWAY_SANDBOX_ROOT: cwd.dir,
        },
        encoding: 'utf8',
      });
      assert.match(stderr, new RegExp(`module ${module} has no C`));
      return stdout;
    });
    assert.deepEqual(heard, ['code\n', 'only here\n']);
  });
});
