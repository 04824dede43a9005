/** The runner as a sandbox starts it, in a folder in place of the sandbox's root. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, mkdtempDisposable, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { runnerPackageDir, runnerProgram } from '../../src/runner/interpreter.ts';

const program = path.join(runnerPackageDir, runnerProgram);

const code = `
class Workflow:
    def __init__(self, config):
        self.config = config

    async def run(self, ctx):
        return self.config["messages"]


class Grader:
    def __init__(self, config):
        pass

    async def grade(self, ctx):
        ctx.set_reward(len(ctx.sample.messages))
`;

const input = (more: object) => ({
  version: 1,
  rollout_id: 'r',
  metadata: {},
  prompt: [],
  ...more,
});

/** Exit code, and what is in the files afterwards: null = there is none. */
async function carryOut(part: string, files: Readonly<Record<string, object>>) {
  await using root = await mkdtempDisposable(path.join(tmpdir(), 'slipway-in-sandbox-'));
  await writeFile(path.join(root.path, 'own.py'), code);
  for (const [name, content] of Object.entries(files)) {
    await mkdir(path.join(root.path, path.dirname(name)), { recursive: true });
    await writeFile(path.join(root.path, name), JSON.stringify(content));
  }
  const { status, stderr } = spawnSync('python3', [program, 'in-sandbox', part], {
    env: {
      ...process.env,
      PYTHONPATH: [runnerPackageDir, root.path].join(path.delimiter),
      SLIPWAY_SANDBOX_ROOT: root.path,
    },
    encoding: 'utf8',
  });
  const read = (name: string): Promise<unknown> =>
    readFile(path.join(root.path, 'logs', name), 'utf8').then(JSON.parse, () => null);
  return {
    ...{ status, stderr },
    result: (await read('agent/container_result.json')) as { readonly sample?: unknown } | null,
    trajectory: await read('agent/trajectory.json'),
    reward: await read('verifier/reward.json'),
  };
}

function work(messages: readonly object[]) {
  return carryOut('workflow', {
    'logs/agent/container_input.json': input({
      workflow: { module: 'own', name: 'Workflow' },
      workflow_config: { messages },
    }),
  });
}

describe('a workflow in a sandbox', () => {
  it('leaves its messages as a trajectory too', async () => {
    const { result, trajectory } = await work([{ role: 'user', content: 'go' }]);
    assert.ok(result?.sample);
    const steps = [{ step_id: 1, source: 'user', message: 'go' }];
    assert.deepEqual((trajectory as { readonly steps: unknown }).steps, steps);
  });

  for (const said of ['{"x": NaN}', '{"x": 1e999}', '['.repeat(100_000)])
    it(`may hold tool calls whose arguments are no JSON: ${said.slice(0, 10)}`, async () => {
      const call = { id: 'c', function: { name: 'f', arguments: said } };
      const { result, trajectory, stderr } = await work([
        { role: 'assistant', content: null, tool_calls: [call] },
      ]);
      assert.ok(result?.sample, stderr);
      const told = [{ tool_call_id: 'c', function_name: 'f', arguments: { arguments: said } }];
      const { steps } = trajectory as { readonly steps: readonly Record<string, unknown>[] };
      assert.deepEqual(steps[0]?.['tool_calls'], told);
    });

  for (const odd of [
    { role: 'assistant', content: 'x', tool_calls: ['a text'] },
    { role: 'assistant', content: 'x', tool_calls: [{ function: 'f' }] },
    { role: 'tool', content: 'x', tool_call_id: ['a list'] },
  ])
    it(`may shape its messages as it likes, without a trajectory: ${JSON.stringify(odd)}`, async () => {
      const { status, stderr, result, trajectory } = await work([odd]);
      assert.equal(status, 0, stderr);
      assert.ok(result?.sample);
      assert.equal(trajectory, null);
    });
});

describe('a grader in a sandbox', () => {
  it('grades the first trajectory that is one, where nothing else was left', async () => {
    const { status, stderr, reward } = await carryOut('grader', {
      'tests/container_input.json': input({
        label: null,
        grader: { module: 'own', name: 'Grader' },
        grader_config: {},
      }),
      'logs/agent/a.trajectory.json': { steps: ['a text'] },
      'logs/agent/b.trajectory.json': { steps: [{ source: 'agent', observation: 'a text' }] },
      'logs/agent/c.trajectory.json': { steps: [{ source: 'user', message: 'go' }] },
    });
    assert.equal(status, 0, stderr);
    assert.deepEqual(reward, { reward: 1 });
  });
});
