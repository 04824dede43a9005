import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import {
  dumpNonDefaultTrialConfig,
  dumpTrialConfig,
  toHarborTime,
} from '../../../src/wire/harbor/dump.ts';
import { isTemplate, maskVariables } from '../../../src/wire/harbor/sensitive.ts';
import { isSameTrial, trialConfigSchema } from '../../../src/wire/harbor/trial-config.ts';
import { trialResultSchema } from '../../../src/wire/harbor/trial-result.ts';

const golden = path.join(import.meta.dirname, '..', '..', 'golden', 'harbor');
const read = (...parts: readonly string[]): unknown =>
  JSON.parse(readFileSync(path.join(golden, ...parts), 'utf8'));

interface Expected {
  readonly rewards: Record<string, number> | null;
  readonly exception: string | null;
  readonly steps: readonly string[] | null;
  readonly mode: string | null;
}

describe('a trial folder of Harbor', () => {
  const versions = readdirSync(golden).sort();
  test('is known for seven versions', () => assert.equal(versions.length, 7));
  for (const version of versions)
    test(`of ${version} is read`, () => {
      const result = trialResultSchema.parse(read(version, 'trial', 'result.json'));
      const expected = read(version, 'trial', 'expected.json') as Expected;
      assert.deepEqual(result.verifier_result?.rewards ?? null, expected.rewards);
      assert.equal(result.exception_info?.exception_type ?? null, expected.exception);
      assert.deepEqual(
        result.step_results?.map(({ step_name }) => step_name) ?? null,
        expected.steps,
      );
      assert.equal(result.verifier_environment_mode, expected.mode);
      assert.equal(result.slipway, null);
      const config = trialConfigSchema.parse(read(version, 'trial', 'config.json'));
      assert.ok(isSameTrial(config, result.config));
      const again = trialConfigSchema.parse(dumpNonDefaultTrialConfig(config, {}));
      assert.deepEqual(again, config, 'written and read back it is the same');
    });
});

describe('a trial configuration', () => {
  const task = { path: '/t' };

  test('has the oracle and docker where nothing is said', () => {
    const config = trialConfigSchema.parse({ task });
    assert.deepEqual([config.agent.name, config.environment.type], ['oracle', 'docker']);
    assert.equal(trialConfigSchema.parse({ task, agent: { import_path: 'a:B' } }).agent.name, null);
  });

  test('coerces as Pydantic does and drops what it does not know', () => {
    const config = trialConfigSchema.parse({
      task,
      unknown: 1,
      timeout_multiplier: '2',
      agent: { n_concurrent: 2.0, override_timeout_sec: '1.5' },
      environment: { force_build: 'yes', cpu_enforcement_policy: 'LIMIT' },
    });
    assert.equal(config.timeout_multiplier, 2);
    assert.equal(config.agent.override_timeout_sec, 1.5);
    assert.equal(config.environment.force_build, true);
    assert.equal(config.environment.cpu_enforcement_policy, 'limit');
    assert.equal('unknown' in config, false);
  });

  const broken: readonly (readonly [string, Record<string, unknown>, string])[] = [
    ['neither path nor name', { task: {} }, 'task.path'],
    ['path and name', { task: { path: '/t', name: 'a/b' } }, 'task.name'],
    ['a ref without a name', { task: { path: '/t', ref: 'x' } }, 'task.ref'],
    [
      'a commit without a repository',
      { task: { path: '/t', git_commit_id: 'x' } },
      'task.git_commit_id',
    ],
    [
      'a group without a size',
      { task, agent: { concurrency_group: 'x' } },
      'agent.concurrency_group',
    ],
    ['a number for a name', { task, trial_name: 5 }, 'trial_name'],
    [
      'half a processor',
      { task, environment: { override_cpus: 0.5 } },
      'environment.override_cpus',
    ],
    [
      'a source with install_only',
      { task, install_only: true, source_trial: { action: 'regrade', type: 'local' } },
      'source_trial',
    ],
  ];
  for (const [title, fields, field] of broken)
    test(`with ${title} is refused at ${field}`, () => {
      const { error } = trialConfigSchema.safeParse(fields);
      assert.deepEqual(
        error?.issues.map((issue) => issue.path.join('.')),
        [field],
      );
    });

  test('install_only switches verification off', () => {
    assert.equal(trialConfigSchema.parse({ task, install_only: true }).verifier.disable, true);
  });

  test('is the same trial whatever its name and job', () => {
    const one = trialConfigSchema.parse({ task, trial_name: 'a', job_id: '1' });
    assert.ok(isSameTrial(one, trialConfigSchema.parse({ task, trial_name: 'b' })));
    assert.ok(!isSameTrial(one, trialConfigSchema.parse({ task, timeout_multiplier: 2 })));
  });

  test('writes an environment that Harbor does not know as an import path', () => {
    const config = trialConfigSchema.parse({ task, environment: { type: 'local' } });
    const { environment } = dumpTrialConfig(config, {});
    assert.deepEqual(
      [
        (environment as { type: unknown }).type,
        (environment as { import_path: unknown }).import_path,
      ],
      [null, 'slipway:local'],
    );
  });
});

describe('variables in a written configuration', () => {
  test('keep templates and plain values, name the host’s, redact the rest', () => {
    assert.deepEqual(
      maskVariables(
        {
          A_KEY: 'abcdefghijk',
          B_TOKEN: 'short',
          C_SECRET: '${X:-y}',
          D_AUTH: 'same',
          PLAIN: 'x',
          E_KEY: '',
        },
        { D_AUTH: 'same' },
      ),
      {
        A_KEY: 'abcd****ijk',
        B_TOKEN: '****',
        C_SECRET: '${X:-y}',
        D_AUTH: '${D_AUTH}',
        PLAIN: 'x',
        E_KEY: '',
      },
    );
    assert.ok(!isTemplate('prefix_${X}'));
  });
});

test('times are UTC with microseconds', () => {
  assert.equal(
    toHarborTime(new Date(Date.UTC(2026, 0, 2, 3, 4, 5, 6))),
    '2026-01-02T03:04:05.006000Z',
  );
});
