import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { agentNames, resolveAgent } from '../../src/agents/registry.ts';
import { isRolloutError } from '../../src/core/errors.ts';
import { FakeProvider } from '../fakes/environment/fake-provider.ts';
import { answerTask, environmentTable, runTrial } from '../trial/trial-bench.ts';

const provider = new FakeProvider();

describe('the registry of agents', () => {
  test('answers every name it lists, and lists them for a name it does not know', async () => {
    for (const name of agentNames) assert.equal(typeof (await resolveAgent(name)), 'function');
    await assert.rejects(resolveAgent('clever'), (error) => {
      assert.ok(isRolloutError(error, 'AGENT_UNKNOWN'));
      for (const name of agentNames) assert.ok(error.remedy?.includes(` ${name}`), name);
      return true;
    });
  });
});

describe('the oracle', () => {
  test('runs the solution with its own variables over the agent’s, unattended', async () => {
    const files = {
      ...answerTask,
      'task.toml': `${environmentTable}[solution.env]\nWHO = "solution"\n`,
      'solution/solve.sh': '#!/bin/bash\necho "$WHO $DEBIAN_FRONTEND"\n',
    };
    const config = { agent: { name: 'oracle', env: { WHO: 'agent' } } };
    await runTrial({ provider, files, config }, ({ file }, result) => {
      assert.equal(file('agent/oracle.txt'), 'solution noninteractive\n');
      assert.deepEqual(result.agent_info, { name: 'oracle', version: '1.0.0', model_info: null });
    });
  });

  test('only notes an exit status that is not 0: verification decides', async () => {
    const files = {
      ...answerTask,
      'solution/solve.sh': '#!/bin/bash\nmkdir -p /app; echo yes > /app/answer; exit 3\n',
    };
    await runTrial({ provider, files }, ({ file }, result) => {
      assert.equal(file('agent/exit-code.txt'), '3\n');
      assert.equal(result.exception_info, null);
      assert.deepEqual(result.verifier_result, { rewards: { reward: 1 } });
    });
  });

  test('that runs over a limit of less than a second ends as a timeout of the agent, verified', async () => {
    const files = {
      ...answerTask,
      'solution/solve.sh': '#!/bin/bash\nmkdir -p /app; echo yes > /app/answer; sleep 30\n',
    };
    const config = { agent: { name: 'oracle', override_timeout_sec: 0.7 } };
    const result = await runTrial({ provider, files, config });
    assert.equal(result.slipway?.outcome.cause, 'AGENT_TIMEOUT');
    assert.deepEqual(result.verifier_result, { rewards: { reward: 1 } });
  });

  test('takes a step’s own solution before the shared one', async () => {
    const files = {
      ...answerTask,
      'task.toml': `${environmentTable}[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n`,
      'steps/one/instruction.md': '1\n',
      'steps/two/instruction.md': '2\n',
      'steps/one/solution/solve.sh': '#!/bin/bash\necho own\n',
      'solution/solve.sh': '#!/bin/bash\necho shared\n',
    };
    await runTrial({ provider, files }, ({ file }) => {
      assert.equal(file('steps/one/agent/oracle.txt'), 'own\n');
      assert.equal(file('steps/two/agent/oracle.txt'), 'shared\n');
    });
  });
});

test('nop leaves the environment as it is', async () => {
  const result = await runTrial({ provider, config: { agent: { name: 'nop' } } });
  assert.deepEqual(result.verifier_result, { rewards: { reward: 0 } });
});
