import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parse } from 'smol-toml';
import { writeTaskToml } from '../../src/tasks/write-task-toml.ts';
import { parseTaskConfig } from '../../src/wire/harbor/task-config.ts';

function rewritten(toml: string): string {
  const parsed = parseTaskConfig(parse(toml));
  assert.ok('value' in parsed);
  return writeTaskToml(parsed.value);
}

describe('a written task.toml', () => {
  it('has root fields first, artifacts last of them, and tables in order', () => {
    const text = writeTaskToml({
      solution: { env: { A: '1' } },
      environment: { cpus: 1 },
      artifacts: ['/out'],
      extra_table: { x: 1 },
      agent: { timeout_sec: 1 },
      steps: [{ name: 'a' }],
      owner: 'me',
      verifier: { timeout_sec: 1 },
      metadata: { m: 1 },
      task: { name: 'o/n' },
      multi_step_reward_strategy: 'mean',
      source: 's',
      schema_version: '1.4',
    });
    const heads = text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => line.split(' =')[0]!);
    assert.deepEqual(
      heads.filter((head) => !/^(name|m|timeout_sec|cpus|A|x)$/.test(head)),
      [
        'schema_version',
        'source',
        'multi_step_reward_strategy',
        'owner',
        'artifacts',
        '[task]',
        '[[steps]]',
        '[metadata]',
        '[verifier]',
        '[agent]',
        '[environment]',
        '[solution.env]',
        '[extra_table]',
      ],
    );
    assert.deepEqual(Object.keys(parse(text)).length, 13);
  });

  it('leaves out nulls, empty tables and the verifier environment that is not there', () => {
    const text = rewritten('[environment]\ncpus = 1\n[verifier]\ntimeout_sec = 5');
    for (const absent of ['null', 'memory_mb', 'verifier.environment', '[solution', '[metadata'])
      assert.ok(!text.includes(absent), text);
    assert.match(text, /cpus = 1/);
  });

  it('keeps network policies and never says allow_internet', () => {
    const text = rewritten(
      '[environment]\nallow_internet = false\n[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["A.com"]',
    );
    assert.ok(!text.includes('allow_internet'));
    const again = parseTaskConfig(parse(text));
    assert.ok('value' in again);
    assert.equal(again.value.environment.network_mode, 'no-network');
    assert.deepEqual(again.value.agent.allowed_hosts, ['a.com']);
    assert.ok(!writeTaskToml({ environment: { allow_internet: true, cpus: 1 } }).includes('allow'));
  });

  it('keeps artifacts that are tables readable', () => {
    const text = rewritten(
      'artifacts = ["/a", {source = "/b", exclude = ["*.o"]}]\n[agent]\nuser = "u"',
    );
    const again = parseTaskConfig(parse(text));
    assert.ok('value' in again);
    assert.deepEqual(
      again.value.artifacts.map(({ source, exclude }) => [source, exclude]),
      [
        ['/a', []],
        ['/b', ['*.o']],
      ],
    );
  });
});
