import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import { FakeMachine } from '../fakes/environment/fake-machine.ts';
import { FakeProvider } from '../fakes/environment/fake-provider.ts';
import type { FolderFiles } from '../fakes/task-folder.ts';
import { answerTask, image, runTrial, trialBench } from './trial-bench.ts';

/** The separate verifier's own image has no tests here; its Dockerfile brings them. */
const separate: FolderFiles = {
  ...answerTask,
  'task.toml': `artifacts = ["/app/answer"]\n[environment]\ndocker_image = "${image}"\n[verifier.environment]\n`,
  'tests/Dockerfile': `FROM ${image}\nCOPY test.sh /tests/test.sh\n`,
};

const source = (dir: string) => ({
  source_trial: { action: 'regrade', type: 'local', trial_id: null, path: dir },
  agent: { name: 'nop' },
});

describe('grading a finished trial again', () => {
  test('verifies what it kept, without an agent, and keeps who did the work', async () => {
    const provider = new FakeProvider();
    await using first = await trialBench({ provider, files: separate });
    const before = await first.trial.run(never);
    assert.deepEqual(before.verifier_result, { rewards: { reward: 1 } });
    writeFileSync(path.join(first.trial.dir, 'artifacts/app/answer'), 'no\n');
    const result = await runTrial({ provider, files: separate, config: source(first.trial.dir) });
    assert.equal(result.exception_info, null);
    assert.deepEqual(result.verifier_result, { rewards: { reward: 0 } });
    assert.equal(result.agent_info.name, 'oracle');
    assert.equal(result.agent_execution, null);
  });

  test('needs nothing of the environment that the agent worked in', async () => {
    const withService: FolderFiles = {
      ...separate,
      'environment/docker-compose.yaml': 'services:\n  main: {}\n  side:\n    image: side\n',
    };
    await using first = await trialBench({ provider: new FakeProvider(), files: withService });
    const before = await first.trial.run(never);
    assert.deepEqual(before.verifier_result, { rewards: { reward: 1 } });
    const machine = new FakeMachine({ capabilities: { compose: false } });
    const provider = new FakeProvider(machine);
    const config = source(first.trial.dir);
    const result = await runTrial({ provider, files: withService, config });
    assert.equal(result.exception_info, null);
    assert.deepEqual(result.verifier_result, { rewards: { reward: 1 } });
  });

  const impossible: readonly (readonly [string, FolderFiles, (dir: string) => string])[] = [
    ['a verifier that shares the sandbox', answerTask, (dir) => dir],
    ['a folder that is not there', separate, () => '/no/such/trial'],
  ];
  for (const [title, files, choose] of impossible)
    test(`with ${title} is REGRADE_IMPOSSIBLE`, async () => {
      const provider = new FakeProvider();
      await using first = await trialBench({ provider, files });
      await first.trial.run(never);
      const config = source(choose(first.trial.dir));
      const result = await runTrial({ provider, files, config });
      assert.equal(result.slipway?.outcome.cause, 'REGRADE_IMPOSSIBLE');
      assert.equal(result.exception_info?.exception_type, 'RegradeError');
    });
});
