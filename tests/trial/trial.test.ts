import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { deadlineVariable } from '../../src/agents/agent.ts';
import { RolloutError } from '../../src/core/errors.ts';
import { trialResultSchema } from '../../src/wire/harbor/trial-result.ts';
import { trialConfigSchema } from '../../src/wire/harbor/trial-config.ts';
import { trialLockSchema } from '../../src/wire/harbor/trial-lock.ts';
import { FakeProvider } from '../fakes/environment/fake-provider.ts';
import { answerTask, environmentTable, image, runTrial } from './trial-bench.ts';

const provider = new FakeProvider();
const solve = 'mkdir -p /app; echo yes > /app/answer';

describe('a trial', () => {
  test('leaves the folder that Harbor leaves, readable again', async () => {
    await runTrial({ provider }, (bench, result) => {
      assert.deepEqual(result.verifier_result, { rewards: { reward: 1 } });
      assert.deepEqual(trialResultSchema.parse(JSON.parse(bench.file('result.json'))), result);
      assert.match(bench.file('result.json'), /^\{\n {4}"id"/);
      assert.match(result.started_at ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
      const config = JSON.parse(bench.file('config.json')) as Record<string, unknown>;
      assert.deepEqual(Object.keys(config).sort(), [
        'agent',
        'environment',
        'task',
        'trial_name',
        'trials_dir',
      ]);
      assert.deepEqual(trialConfigSchema.parse(config), result.config);
      assert.equal(trialLockSchema.parse(JSON.parse(bench.file('lock.json'))).task.name, 'a-task');
      assert.match(bench.file('trial.log'), /running agent/);
      assert.equal(existsSync(path.join(bench.trial.dir, 'exception.txt')), false);
      assert.equal(bench.file('agent/oracle.txt'), '');
      assert.equal(bench.file('verifier/reward.txt'), '1\n');
    });
    assert.equal(provider.machine.sandboxes.size, 0);
  });

  test('tells observers what it does, and one that throws breaks nothing', async () => {
    const parts = {
      observe: () => {
        throw new Error('observer');
      },
    };
    const deaf = await runTrial({ provider, parts });
    assert.equal(deaf.exception_info, null);
    const files = { ...answerTask, 'environment/notes.txt': 'for the working folder' };
    await runTrial({ provider, files }, ({ events, trial }) => {
      assert.equal(events[0]?.type, 'trial:started');
      assert.equal(events.at(-1)?.type, 'trial:ended');
      const stages = events.flatMap((event) =>
        event.type === 'stage:started' ? [event.stage] : [],
      );
      assert.deepEqual(stages, [
        'starting environment',
        'bringing environment files',
        'setting up agent',
        'running agent',
        'stopping agent',
        'saving agent logs',
        'collecting artifacts',
        'cleaning verifier folders',
        'running verifier',
      ]);
      assert.equal(trial.progress.stage, 'running verifier');
    });
  });

  test('whose agent runs out of time keeps its partial log and is verified all the same', async () => {
    const result = await runTrial(
      {
        provider,
        config: { agent: { override_timeout_sec: 0.6 } },
        agent: {
          run: async ({ environment, deadline }, signal) => {
            assert.ok(deadline !== null);
            const command = `${solve}; echo "$${deadlineVariable}" > /logs/agent/log.txt; sleep 60`;
            await environment.exec({ command }, signal);
          },
        },
      },
      ({ file }) => assert.match(file('agent/log.txt'), /^20\d\d-.*Z$/m),
    );
    assert.equal(result.exception_info?.exception_type, 'AgentTimeoutError');
    assert.deepEqual(result.verifier_result, { rewards: { reward: 1 } });
    assert.deepEqual(
      [result.slipway?.outcome.cause, result.slipway?.outcome.trainable],
      ['AGENT_TIMEOUT', true],
    );
  });

  test('whose agent ran out of time because its model failed is verified, and not trained on', async () => {
    const result = await runTrial({
      provider,
      config: { agent: { override_timeout_sec: 0.6 } },
      agent: {
        run: async ({ environment }, signal) => {
          await environment.exec({ command: solve }, signal);
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          throw new RolloutError('ENGINE_OVERLOADED', 'busy', { phase: 'model-call' });
        },
      },
    });
    assert.equal(result.exception_info?.exception_type, 'AgentTimeoutError');
    assert.match(result.exception_info.exception_message, /longer than 0\.6 s .*ENGINE_OVERLOADED/);
    assert.deepEqual(result.verifier_result, { rewards: { reward: 1 } });
    const { cause, trainable, retryable } = result.slipway!.outcome;
    assert.deepEqual([cause, trainable, retryable], ['AGENT_TIMEOUT', false, true]);
  });

  test('whose agent exits with an error is verified; any other failure ends it unverified, logs saved', async () => {
    const failing = (code: 'AGENT_EXIT_NONZERO' | 'AGENT_FAILED') =>
      runTrial(
        {
          provider,
          agent: {
            run: async ({ environment }, signal) => {
              await environment.exec({ command: `${solve}; echo hi > /logs/agent/x` }, signal);
              throw new RolloutError(code, 'the program failed', { phase: 'agent' });
            },
          },
        },
        ({ file }) => assert.equal(file('agent/x'), 'hi\n'),
      );
    const exited = await failing('AGENT_EXIT_NONZERO');
    assert.equal(exited.exception_info?.exception_type, 'NonZeroAgentExitCodeError');
    assert.deepEqual(exited.verifier_result, { rewards: { reward: 1 } });
    const failed = await failing('AGENT_FAILED');
    assert.equal(failed.verifier_result, null);
    assert.equal(failed.slipway?.outcome.trainable, false);
  });

  test('that queues for its agent does not charge the agent for it', async () => {
    const parts = {
      admitAgent: async () => {
        await new Promise((resolve) => setTimeout(resolve, 900));
        return () => undefined;
      },
    };
    const config = { agent: { name: 'oracle', override_timeout_sec: 0.8 } };
    const result = await runTrial({ provider, parts, config });
    assert.equal(result.exception_info, null);
    assert.ok((result.slipway?.phase_times.queue_ms ?? 0) >= 890);
    assert.ok((result.slipway?.phase_times.agent_ms ?? 0) < 800);
  });

  test('gives the agent’s variables to the agent only, and writes no secret anywhere', async () => {
    const secret = 'sk-very-secret-value';
    const files = {
      ...answerTask,
      'tests/test.sh':
        '#!/bin/bash\nenv > /logs/verifier/env.txt\necho 1 > /logs/verifier/reward.txt\n',
    };
    await runTrial(
      {
        provider,
        files,
        config: {
          agent: { env: { MODEL_API_KEY: '${HOST_KEY}', PLAIN: 'agent' } },
          verifier: { env: { JUDGE_TOKEN: 'judge-token-1234' } },
        },
        parts: { hostVariables: { HOST_KEY: secret } },
        agent: {
          run: async ({ environment }, signal) => {
            await environment.exec({ command: 'env > /logs/agent/env.txt' }, signal);
            throw new Error(`upstream said: bad key ${secret}`);
          },
        },
      },
      (bench, result) => {
        assert.match(bench.file('agent/env.txt'), /MODEL_API_KEY=\[REDACTED\]/);
        assert.match(bench.file('agent/env.txt'), /PLAIN=agent/);
        assert.match(bench.file('config.json'), /"MODEL_API_KEY": "\$\{HOST_KEY\}"/);
        for (const name of [
          'result.json',
          'exception.txt',
          'trial.log',
          'config.json',
          'lock.json',
        ]) {
          assert.ok(!bench.file(name).includes(secret), name);
          assert.ok(!bench.file(name).includes('judge-token-1234'), name);
        }
        assert.ok(!JSON.stringify(result.exception_info).includes(secret));
      },
    );
    await runTrial(
      { provider, files, config: { agent: { name: 'nop', env: { PLAIN: 'agent' } } } },
      ({ file }) => assert.doesNotMatch(file('verifier/env.txt'), /PLAIN/),
    );
  });

  test('keeps secrets out of the log of the run and of what the solution prints', async () => {
    const secret = 'solution-token-1234';
    const lines: string[] = [];
    const parts = {
      hostVariables: { HOST_TOKEN: secret },
      logger: {
        log: (_level: string, message: string, fields?: object) =>
          void lines.push(`${message} ${JSON.stringify(fields)}`),
      },
    };
    const files = {
      ...answerTask,
      'task.toml': `${environmentTable}[solution.env]\nTOKEN = "\${HOST_TOKEN}"\n`,
      'solution/solve.sh': '#!/bin/bash\necho "token $TOKEN"\n',
    };
    await runTrial({ provider, files, parts }, ({ file }) =>
      assert.match(file('agent/oracle.txt'), /token \[REDACTED\]/),
    );
    const agent = {
      run: () => Promise.reject(new Error(`refused: ${secret}`)),
    };
    await runTrial({ provider, files, parts, agent });
    assert.match(lines.join('\n'), /refused: \[REDACTED\]/);
    assert.ok(!lines.join('\n').includes(secret));
  });

  test('collects from a service when the sandbox itself has stopped', async () => {
    const files = {
      ...answerTask,
      'environment/docker-compose.yaml': 'services:\n  main: {}\n  side: {}\n',
      'task.toml': [
        'artifacts = ["/app/answer", {source = "/data/count", service = "side"}]',
        environmentTable,
        '[verifier.environment]',
        '[[verifier.collect]]',
        'service = "side"',
        'command = "mkdir -p /data && echo 7 > /data/count"',
      ].join('\n'),
      'tests/Dockerfile': `FROM ${image}\nCOPY test.sh /tests/test.sh\n`,
    };
    await runTrial({ provider, files }, ({ file }, result) => {
      assert.equal(result.exception_info, null);
      assert.deepEqual(result.verifier_result, { rewards: { reward: 1 } });
      const manifest = JSON.parse(file('artifacts/manifest.json')) as {
        readonly source: string;
        readonly service: string | null;
        readonly status: string;
      }[];
      assert.deepEqual(
        manifest.map(({ source, service, status }) => [source, service, status]),
        [
          ['/logs/artifacts', null, 'empty'],
          ['/app/answer', null, 'ok'],
          ['/data/count', 'side', 'ok'],
        ],
      );
    });
  });

  test('brings skills, readable and in a folder of their own', async () => {
    const dir = path.join(import.meta.dirname, 'skill');
    const lock = {
      name: 'counting',
      source: dir,
      digest: 'sha256:0',
      git_url: null,
      git_commit_id: null,
    };
    await runTrial({
      provider,
      skills: [{ name: 'counting', dir, lock }],
      agent: {
        run: async ({ environment }, signal) => {
          const { stdout } = await environment.exec(
            { command: 'cat /harbor/skills/counting/SKILL.md' },
            signal,
          );
          assert.equal(stdout, readFileSync(path.join(dir, 'SKILL.md'), 'utf8'));
        },
      },
    });
  });

  test('with install_only sets up and stops', async () => {
    let hasRun = false;
    const result = await runTrial({
      provider,
      config: { install_only: true },
      agent: {
        run: async () => {
          hasRun = true;
        },
      },
    });
    assert.equal(hasRun, false);
    assert.equal(result.exception_info, null);
    assert.ok(result.agent_setup?.finished_at);
    assert.equal(result.verifier_result, null);
  });

  test('collects declared artifacts with a manifest, the first claimant of a place winning', async () => {
    const files = {
      ...answerTask,
      'task.toml': `artifacts = ["/app/out", { source = "/app/one.txt", destination = "kept/one.txt" }, { source = "/app/two.txt", destination = "kept/one.txt" }, "/app/none.txt"]\n[environment]\ndocker_image = "${image}"\n`,
      'solution/solve.sh':
        '#!/bin/bash\nmkdir -p /app/out /logs/artifacts\necho a > /app/out/a; echo 1 > /app/one.txt; echo 2 > /app/two.txt; echo yes > /app/answer\n',
    };
    await runTrial({ provider, files }, ({ file }) => {
      assert.equal(file('artifacts/app/out/a'), 'a\n');
      assert.equal(file('artifacts/kept/one.txt'), '1\n');
      const manifest = JSON.parse(file('artifacts/manifest.json')) as Record<string, string>[];
      assert.deepEqual(
        manifest.map(({ source, status, type }) => [source, status, type]),
        [
          ['/logs/artifacts', 'empty', 'directory'],
          ['/app/out', 'ok', 'directory'],
          ['/app/one.txt', 'ok', 'file'],
          ['/app/two.txt', 'skipped', 'file'],
          ['/app/none.txt', 'failed', 'file'],
        ],
      );
    });
  });
});
