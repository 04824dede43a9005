import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import type { AgentEnvironment, AgentRun } from '../../../src/agents/agent.ts';
import { WorkflowAgent } from '../../../src/backends/harbor/workflow-agent.ts';
import { RolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { taskFolder } from '../../fakes/task-folder.ts';

describe('the Python of a sandbox', () => {
  const answers = [
    ['is taken from 3.9 on', { exitCode: 0, stdout: '3.9\n' }, null],
    ['is taken whatever its minor version', { exitCode: 0, stdout: '3.14\n' }, null],
    ['must not be older', { exitCode: 0, stdout: '3.8\n' }, 'Python 3.8 of the sandbox is too old'],
    [
      'must not be Python 2',
      { exitCode: 0, stdout: '2.7\n' },
      'Python 2.7 of the sandbox is too old',
    ],
    ['must be there', { exitCode: 127, stdout: '' }, 'the sandbox has no Python that runs as py'],
    [
      'must be whole',
      { exitCode: 1, stdout: '3.11\n' },
      'py of the sandbox lacks a part of its standard library',
    ],
  ] as const;
  for (const [title, answer, message] of answers)
    it(title, async () => {
      const agent = new WorkflowAgent({
        ...{ name: 'm:C', python: 'py', input: {}, hasPrompt: true, route: null },
        ...{ hostEndpoint: null, stagingDir: '/none', leave: () => undefined },
      });
      const environment: Pick<AgentEnvironment, 'exec'> = {
        exec: () => Promise.resolve({ ...answer, stderr: '', isTruncated: false }),
      };
      const setup = agent.setup(environment as AgentEnvironment, never);
      if (message === null) await setup;
      else
        await assert.rejects(setup, {
          ...{ code: 'AGENT_SETUP_FAILED', message, retryable: false },
          field: 'backend.harbor.sandbox_python',
        });
    });
});

describe('the workflow of a sandbox', () => {
  it('that leaves no result in its second step has none, whatever the first one left', async () => {
    await using staging = await taskFolder({});
    const left: unknown[] = [];
    const agent = new WorkflowAgent({
      ...{ name: 'm:C', python: 'py', input: {}, hasPrompt: true, route: null },
      ...{ hostEndpoint: null, stagingDir: staging.dir, leave: (sample) => left.push(sample) },
    });
    const commands: string[] = [];
    const isThere = [true, false];
    const environment = {
      hostEndpointUrl: null,
      uploadFile: () => Promise.resolve(),
      exec: ({ command }: { readonly command: string }) => {
        commands.push(command);
        return Promise.resolve({ exitCode: 0, stdout: '', stderr: '', isTruncated: false });
      },
      downloadFile: async (_source: string, target: string) => {
        if (isThere.shift() !== true)
          throw new RolloutError('TRANSFER_FAILED', 'not there', { phase: 'agent' });
        await writeFile(target, '{"status":"success","sample":null}');
      },
    };
    const run = { environment, instruction: 'go' } as unknown as AgentRun;
    await agent.run(run, never);
    assert.deepEqual(left, [null]);
    await assert.rejects(agent.run(run, never), {
      ...{ code: 'WORKFLOW_FAILED', message: /left no result/ },
    });
    assert.match(commands[0] ?? '', /^rm -f \/logs\/agent\/container_result\.json; export /);
  });
});
