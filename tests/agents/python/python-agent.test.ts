import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import type { ErrorCode } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import type { Logger } from '../../../src/core/logger.ts';
import type { HostEndpoint } from '../../../src/environments/environment.ts';
import type { TrialResult } from '../../../src/wire/harbor/trial-result.ts';
import { FakeMachine } from '../../fakes/environment/fake-machine.ts';
import { FakeProvider } from '../../fakes/environment/fake-provider.ts';
import type { Fault } from '../../fakes/environment/faults.ts';
import { RolloutError } from '../../../src/core/errors.ts';
import { until } from '../../support/until.ts';
import {
  answerTask,
  image,
  runTrial,
  trialBench,
  type BenchOptions,
  type TrialBench,
} from '../../trial/trial-bench.ts';

const classes = path.join(import.meta.dirname, 'classes');

interface AgentTrial {
  /** Of `plain_agents`. */
  readonly name: string;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly files?: BenchOptions['files'];
  readonly fault?: Fault;
  readonly logger?: Logger;
  readonly hostEndpoint?: HostEndpoint;
  readonly variables?: Readonly<Record<string, string | undefined>>;
}

function runAgent(
  trial: AgentTrial,
  look?: (bench: TrialBench, result: TrialResult) => void,
): Promise<TrialResult> {
  return runTrial(benchOptions(trial), look);
}

function benchOptions(trial: AgentTrial): BenchOptions {
  const { name, config, files, fault, logger, hostEndpoint, variables } = trial;
  const machine = new FakeMachine();
  if (fault !== undefined) machine.faults.plant(fault);
  return {
    provider: new FakeProvider(machine),
    ...(files !== undefined && { files }),
    config: { agent: { import_path: `plain_agents:${name}`, ...config } },
    parts: {
      hostVariables: { ...process.env, SLIPWAY_PYTHONPATH: classes, ...variables },
      ...(logger !== undefined && { logger }),
      ...(hostEndpoint !== undefined && { hostEndpoint }),
    },
  };
}

const table = (lines: string) => ({
  ...answerTask,
  'task.toml': `[environment]\ndocker_image = "${image}"\n${lines}\n`,
});

void describe('an agent in Python', { concurrency: 4 }, () => {
  void test('is set up and run, gets what Harbor gives, and what it tells of its run is kept', async () => {
    const lines: unknown[] = [];
    const result = await runAgent({
      name: 'Agent',
      config: {
        model_name: 'openai/some-model',
        kwargs: { mode: 'fast' },
        env: { OPENAI_API_KEY: 'key-of-the-agent' },
        mcp_servers: [{ name: 'm', transport: 'stdio', command: 'serve' }],
      },
      logger: { log: (_level, message, fields) => lines.push([message, fields]) },
    });
    assert.equal(result.exception_info, null);
    assert.deepEqual(result.verifier_result, { rewards: { reward: 1 } });
    assert.deepEqual(result.agent_info, {
      name: 'plain',
      version: '4.5',
      model_info: { name: 'some-model', provider: 'openai' },
    });
    const { metadata, ...counts } = result.agent_result ?? {};
    assert.deepEqual(counts, {
      n_input_tokens: 11,
      n_cache_tokens: null,
      n_output_tokens: 3,
      cost_usd: 0.5,
      rollout_details: null,
    });
    const { mcp_servers: servers, extra_env: env, ...given } = metadata ?? {};
    assert.deepEqual(given, {
      model_name: 'openai/some-model',
      skills_dir: null,
      environment_logs_dir: '/logs/agent',
      kwargs: { mode: 'fast' },
      instruction: 'Write yes to /app/answer.\n',
      code: 0,
    });
    assert.equal((servers as { name: string }[])[0]?.name, 'm');
    assert.notEqual((env as Record<string, string>)['OPENAI_API_KEY'], undefined);
    assert.doesNotMatch(JSON.stringify(result), /key-of-the-agent/);
    const said = JSON.stringify(lines);
    assert.match(said, /a line of print/);
    assert.match(said, /INFO agent: a line of the log/);
  });

  void test('what it printed last is in the log, although it did not end the line', async () => {
    const lines: unknown[] = [];
    const logger: Logger = { log: (_level, _message, fields) => lines.push(fields?.['line']) };
    await runAgent({ name: 'EndsMidLine', logger });
    assert.equal(lines.at(-1), 'the last line has no end');
  });

  void test('what it tells of its run and nobody can read is left out, and costs it nothing else', async () => {
    const result = await runAgent({ name: 'TellsOddly' });
    assert.equal(result.exception_info, null, result.exception_info?.exception_message);
    assert.deepEqual(result.agent_result, {
      ...{ n_input_tokens: null, n_cache_tokens: null, n_output_tokens: 3, cost_usd: null },
      ...{ rollout_details: null, metadata: { turns: 2 } },
    });
  });

  void test('scoped variables win over those of the agent, these over those of a request', async () => {
    const result = await runAgent({ name: 'Variables', config: { env: { B: 'agent' } } });
    assert.deepEqual(result.agent_result?.metadata, {
      own: 'request,agent',
      none: ',agent',
      scoped: 'scoped,agent',
    });
  });

  void test('an address of the host endpoint is the one from inside, wherever the agent reads it', async () => {
    const result = await runAgent({
      name: 'Address',
      config: {
        env: { OPENAI_BASE_URL: 'http://10.0.0.1:4321/v1/a%2Fb', OTHER: 'http://10.0.0.1:4322/' },
      },
      hostEndpoint: { host: '10.0.0.1', port: 4321 },
    });
    const { own, inside, others } = result.agent_result?.metadata ?? {};
    assert.equal(own, inside);
    assert.notEqual(own, 'http://10.0.0.1:4321/v1/a%2Fb');
    assert.match(String(own), /\/v1\/a%2Fb$/);
    assert.equal(others, 'http://10.0.0.1:4322/');
  });

  void test('copies files and folders in both directions and asks what is there', async () => {
    const result = await runAgent({ name: 'Transfers' });
    assert.equal(result.exception_info, null);
    assert.deepEqual(result.agent_result?.metadata, {
      back: 'yes\n',
      tree: '1',
      is_file: true,
      is_dir: false,
    });
  });

  void test('tells what it learns from its logs when it told nothing before, and may write beside them', async () => {
    let written = '';
    const result = await runAgent({ name: 'ReadsLogs' }, (bench) => {
      written = bench.file('agent/trajectory.json');
    });
    assert.equal(result.agent_result?.n_output_tokens, 17);
    assert.equal(written, '{}');
  });

  void test('logs that it cannot read are a warning', async () => {
    const result = await runAgent({ name: 'CannotReadLogs' });
    assert.deepEqual(result.verifier_result, { rewards: { reward: 1 } });
    assert.match(result.slipway?.warnings.join() ?? '', /could not read its logs.*KeyError/);
  });

  const failures: readonly {
    readonly title: string;
    readonly trial: AgentTrial;
    readonly code: ErrorCode;
    readonly type: string;
    readonly message: RegExp;
    readonly isVerified: boolean;
  }[] = [
    {
      title: 'an exception of its run ends the trial without verification',
      trial: { name: 'Fails' },
      code: 'AGENT_FAILED',
      type: 'LookupError',
      message: /LookupError: the agent has lost its way/,
      isVerified: false,
    },
    {
      title: 'the exit of its program is verified, under the name that Harbor gave it',
      trial: { name: 'Exits' },
      code: 'AGENT_EXIT_NONZERO',
      type: 'ApiRateLimitError',
      message: /Command failed \(exit 1\): agent/,
      isVerified: true,
    },
    {
      title: 'a timeout of its own says nothing of its limit, and is a failure like any other',
      trial: { name: 'LosesConnection' },
      code: 'AGENT_FAILED',
      type: 'TimeoutError',
      message: /TimeoutError: the model does not answer/,
      isVerified: false,
    },
    {
      title:
        'only the trial says that its limit has passed, whatever the agent calls its own timeout',
      trial: { name: 'ClaimsItsLimit' },
      code: 'AGENT_FAILED',
      type: 'TimeoutError',
      message: /AgentTimeoutError: timed out after 1 second/,
      isVerified: false,
    },
    {
      title: 'an exception of its setup is one of the setup',
      trial: { name: 'FailsInSetup' },
      code: 'AGENT_SETUP_FAILED',
      type: 'RuntimeError',
      message: /nothing can be installed here/,
      isVerified: false,
    },
    {
      title: 'a sandbox that went is not the agent’s failure, whatever the agent made of it',
      trial: {
        name: 'LosesSandbox',
        fault: {
          at: 'exec',
          does: new RolloutError('ENVIRONMENT_LOST', 'it went', { phase: 'environment' }),
          when: (command) => command.includes('echo lost'),
        },
      },
      code: 'ENVIRONMENT_LOST',
      type: 'RuntimeError',
      message: /it went/,
      isVerified: false,
    },
    {
      title: 'a process that is killed is a failure of the machine',
      trial: { name: 'KillsItself' },
      code: 'RUNNER_FAILED',
      type: 'RuntimeError',
      message: /was killed from outside, or for lack of memory/,
      isVerified: false,
    },
    {
      title: 'a process that the agent’s code ends is a failure of the agent, with its last words',
      trial: { name: 'Leaves' },
      code: 'AGENT_FAILED',
      type: 'RuntimeError',
      message: /ended its process with exit code 3/,
      isVerified: false,
    },
    {
      title: 'what it refuses in its constructor is refused before a sandbox is started',
      trial: { name: 'Refuses' },
      code: 'CONFIG_INVALID',
      type: 'ValueError',
      message: /ValueError: mode must be fast or slow/,
      isVerified: false,
    },
    {
      title: 'a class that is not there is refused',
      trial: { name: 'Nothing' },
      code: 'CONFIG_INVALID',
      type: 'ValueError',
      message: /has no class 'Nothing'/,
      isVerified: false,
    },
    {
      title: 'what is no class is refused',
      trial: { name: 'NotAClass' },
      code: 'CONFIG_INVALID',
      type: 'ValueError',
      message: /is not a class/,
      isVerified: false,
    },
    {
      title: 'an interpreter that is not there is named',
      trial: { name: 'Agent', variables: { SLIPWAY_PYTHON: '/no/such/python' } },
      code: 'CONFIG_INVALID',
      type: 'ValueError',
      message: /cannot be started/,
      isVerified: false,
    },
  ];
  for (const { title, trial, code, type, message, isVerified } of failures)
    void test(title, async () => {
      const result = await runAgent(trial);
      assert.equal(result.slipway?.failure?.code, code, result.exception_info?.exception_message);
      assert.equal(result.exception_info?.exception_type, type);
      assert.match(result.exception_info.exception_message, message);
      assert.equal(result.verifier_result !== null, isVerified);
      if (trial.name === 'Leaves')
        assert.match(result.slipway.failure.detail ?? '', /cannot go on$/);
      if (code === 'CONFIG_INVALID') assert.equal(result.environment_setup, null);
    });

  const isAlive = (pid: string): boolean => {
    try {
      return process.kill(Number(pid), 0);
    } catch {
      return false;
    }
  };

  void test('its process ends with the trial', async () => {
    let pid = '';
    await runAgent({ name: 'WritesPid' }, (bench) => {
      pid = bench.file('agent/pid.txt');
      assert.ok(!isAlive(pid));
    });
    assert.match(pid, /^\d+$/);
  });

  void test('its process ends when the trial is cancelled', async () => {
    await using bench = await trialBench(
      benchOptions({ name: 'WritesPid', config: { kwargs: { waits: true } } }),
    );
    const ended = bench.trial.run(never);
    const file = path.join(bench.trial.dir, 'agent/pid.txt');
    await until('the agent works', () => existsSync(file));
    const pid = bench.file('agent/pid.txt');
    assert.ok(isAlive(pid));
    await bench.trial.cancel();
    const { slipway } = await ended;
    assert.equal(slipway?.failure?.code, 'CANCELLED');
    assert.ok(!isAlive(pid));
  });

  for (const name of ['Waits', 'IgnoresCancel', 'TimesOutWhenStopped'])
    void test(`${name}: at its limit it is stopped, what it had told stays, and verification runs`, async () => {
      const result = await runAgent({
        name,
        // Its process has to come up and tell something before.
        files: table('[agent]\ntimeout_sec = 4'),
      });
      assert.equal(result.slipway?.failure?.code, 'AGENT_TIMEOUT');
      assert.equal(result.exception_info?.exception_type, 'AgentTimeoutError');
      assert.equal(result.agent_result?.n_input_tokens, 11);
      assert.deepEqual(result.verifier_result, { rewards: { reward: 1 } });
    });
});
