import assert from 'node:assert/strict';
import { compileNativeOptions } from '../../../src/backends/native/native-options.ts';
import {
  nativeTrialConfig,
  prewarmTrialConfig,
} from '../../../src/backends/native/native-trial-config.ts';
import { requestFor } from './native-bench.ts';
import {
  at,
  configOf,
  installed,
  lines,
  refused,
  type Fields,
  type Line,
} from './contract-lines.ts';

const skypilotVariables = { HARBOR_SKYPILOT_CONTEXT: 'of-service' };

lines('short options and full tables', [
  [
    'agent_config with agent and agent_options is refused, the offenders sorted',
    refused(
      { agent_config: {}, agent_options: {}, agent: 'oracle' },
      /agent_config: cannot be mixed with agent, agent_options$/,
    ),
  ],
  [
    'environment_config with environment and environment_options is refused, the offenders sorted',
    refused(
      { environment_config: {}, environment_options: {}, environment: 'local' },
      /environment_config: cannot be mixed with environment, environment_options$/,
    ),
  ],
  [
    'an empty agent_config is Harbor’s default, the oracle',
    () => {
      assert.equal(configOf({ agent_config: {} }).agent.name, 'oracle');
    },
  ],
  [
    'an empty environment_config is Harbor’s default, docker',
    () => {
      assert.equal(configOf({ environment_config: {} }).environment.type, 'docker');
    },
  ],
  [
    'without any, the agent is terminus-2 in local sandboxes',
    () => {
      const { agent, environment } = configOf({});
      assert.deepEqual([agent.name, environment.type], ['terminus-2', 'local']);
    },
  ],
  [
    'a field that Harbor does not have is refused',
    refused(
      { agent_config: { name: 'oracle', modelname: 'x' } },
      /agent_config\.modelname: there is no such field/,
    ),
  ],
  [
    'name and import_path exclude each other',
    refused(
      { binding: installed, agent_config: { name: 'a', import_path: 'b:C' } },
      /name and import_path exclude each other/,
    ),
  ],
  [
    'n_concurrent, concurrency_group and resume_trajectory are refused',
    refused(
      {
        agent_config: {
          name: 'oracle',
          n_concurrent: 2,
          concurrency_group: 'g',
          resume_trajectory: true,
        },
      },
      /concurrency_group: cannot be set.*n_concurrent: cannot be set.*resume_trajectory: cannot be set/,
    ),
  ],
  [
    'resume_trajectory = false is nothing to refuse',
    () => {
      configOf({ agent_config: { resume_trajectory: false } });
    },
  ],
  ...['retries', 'max_retries', 'n_attempts', 'retry'].map((name): Line => [
    `${name}: there are no retries to configure`,
    refused({ [name]: 1 }, new RegExp(name)),
  ]),
  [
    'agent_setup_timeout_sec is positive and finite',
    () => {
      for (const value of [0, -1, NaN, Infinity])
        refused({ agent_setup_timeout_sec: value }, /agent_setup_timeout_sec/)();
    },
  ],
  ...(
    [
      ['unset', {}, 'of-service'],
      ['empty', { context_name: '' }, 'of-service'],
      ['null', { context_name: null }, 'of-service'],
      ['set', { context_name: 'own' }, 'own'],
    ] as const
  ).map(([how, kwargs, filled]): Line => [
    `the context of skypilot is that of HARBOR_SKYPILOT_CONTEXT where it is unset: ${how}`,
    () => {
      const given = { agent: 'oracle', environment: 'skypilot', environment_options: kwargs };
      const before = structuredClone(given);
      const { environment } = compileNativeOptions(given, skypilotVariables);
      assert.equal(environment.kwargs['context_name'], filled);
      assert.deepEqual(given, before);
    },
  ]),
  [
    'the context of skypilot reaches no other environment, and stays unset without the variable',
    () => {
      const filled = (name: string, variables: Readonly<Record<string, string>>): unknown =>
        compileNativeOptions({ agent: 'oracle', environment: name }, variables).environment.kwargs;
      assert.deepEqual(filled('docker', skypilotVariables), {});
      assert.deepEqual(filled('skypilot', {}), {});
      assert.deepEqual(filled('skypilot', { HARBOR_SKYPILOT_CONTEXT: '' }), {});
    },
  ],
  [
    'what no trial could run is refused at construction',
    () => {
      assert.throws(() => compileNativeOptions({ verifier_config: { import_path: 'a:B' } }), {
        code: 'CAPABILITY_UNSUPPORTED',
        field: 'verifier.import_path',
      });
    },
  ],
]);

const agentTable: Fields = {
  name: 'terminus-2',
  skills: ['./skills'],
  mcp_servers: [{ name: 'search', transport: 'sse', url: 'http://mcp/sse' }],
  extra_allowed_hosts: ['example.org'],
  include_logs: ['*.log'],
  exclude_logs: ['big/*'],
  override_timeout_sec: 100,
  override_setup_timeout_sec: 50,
  max_timeout_sec: 200,
  kwargs: { max_turns: 3, llm_kwargs: { extra_body: { top_k: 5 }, seed: 1 } },
  env: { ANTHROPIC_API_KEY: 'other-provider', TEAM: 'red' },
};
const tables: Fields = {
  agent_config: agentTable,
  environment_config: {
    type: 'local',
    override_cpus: 2,
    env: { SECRET_KEY: 'as it is' },
    kwargs: { isolation: 'strict', nested: [1] },
    extra_allowed_hosts: ['packages.example'],
  },
  verifier_config: {
    override_timeout_sec: 30,
    max_timeout_sec: 60,
    env: { API_KEY: 'judge' },
    disable: true,
  },
};

lines('ownership', [
  [
    'kwargs of the user stay, those of the binding are laid over them',
    () => {
      assert.deepEqual(configOf(tables).agent.kwargs, {
        enable_summarize: false,
        proactive_summarization_threshold: 0,
        max_turns: 3,
        api_base: 'http://127.0.0.1:9/v1',
        llm_kwargs: { seed: 1, api_key: 'route-key-1234', extra_body: { top_k: 5, stream: false } },
      });
    },
  ],
  [
    'the defaults of terminus-2 give way to the user’s',
    () => {
      const { kwargs } = configOf({ agent_options: { enable_summarize: true } }).agent;
      assert.deepEqual(
        [kwargs['enable_summarize'], kwargs['proactive_summarization_threshold']],
        [true, 0],
      );
    },
  ],
  [
    'variables stay, those of other providers included, and are not masked',
    () => {
      const { agent, environment, verifier } = configOf(tables);
      assert.deepEqual(agent.env, agentTable['env']);
      assert.deepEqual(
        [environment.env, verifier.env],
        [{ SECRET_KEY: 'as it is' }, { API_KEY: 'judge' }],
      );
    },
  ],
  [
    'skills, MCP servers, log filters and extra hosts stay',
    () => {
      const { skills, mcp_servers, include_logs, exclude_logs, extra_allowed_hosts } =
        configOf(tables).agent;
      assert.deepEqual(
        { skills, include_logs, exclude_logs, extra_allowed_hosts },
        {
          skills: ['./skills'],
          include_logs: ['*.log'],
          exclude_logs: ['big/*'],
          extra_allowed_hosts: ['example.org'],
        },
      );
      assert.deepEqual(
        mcp_servers.map(({ name, url }) => [name, url]),
        [['search', 'http://mcp/sse']],
      );
    },
  ],
  [
    'the environment stays',
    () => {
      const { type, override_cpus, kwargs, extra_allowed_hosts } = configOf(tables).environment;
      assert.deepEqual(
        [type, override_cpus, kwargs, extra_allowed_hosts],
        ['local', 2, { isolation: 'strict', nested: [1] }, ['packages.example']],
      );
    },
  ],
  [
    'the setup limit is the user’s, unless agent_setup_timeout_sec is set',
    () => {
      assert.equal(configOf(tables).agent.override_setup_timeout_sec, 50);
      assert.equal(
        configOf({ ...tables, agent_setup_timeout_sec: 7 }).agent.override_setup_timeout_sec,
        7,
      );
    },
  ],
  [
    'the agent’s limit is the user’s, unless the request has one',
    () => {
      assert.equal(configOf(tables).agent.override_timeout_sec, 100);
      assert.equal(configOf(tables, { agentTimeoutMs: 9_000 }).agent.override_timeout_sec, 9);
    },
  ],
  [
    'the verifier’s limit is the user’s, unless the request has one',
    () => {
      assert.equal(configOf(tables).verifier.override_timeout_sec, 30);
      assert.equal(configOf(tables, { graderTimeoutMs: 8_000 }).verifier.override_timeout_sec, 8);
    },
  ],
  [
    'the user’s caps stay beside the limits of a request, and multipliers are 1',
    () => {
      const config = configOf(tables, { agentTimeoutMs: 9_000, graderTimeoutMs: 8_000 });
      assert.deepEqual(
        [config.agent.max_timeout_sec, config.verifier.max_timeout_sec, config.timeout_multiplier],
        [200, 60, 1],
      );
      assert.deepEqual(
        [config.agent_timeout_multiplier, config.verifier_timeout_multiplier],
        [null, null],
      );
    },
  ],
  [
    'the verifier runs, whatever was written; it does not when a task is prepared',
    () => {
      assert.equal(configOf(tables).verifier.disable, false);
      const prepared = prewarmTrialConfig(compileNativeOptions(tables), { ...at, name: 'p' });
      assert.deepEqual([prepared.verifier.disable, prepared.install_only], [true, true]);
    },
  ],
  [
    'task, name, folder, install_only and job are the server’s',
    () => {
      const { task, trial_name, trials_dir, install_only, job_id, user_agent } = configOf(tables);
      assert.deepEqual(
        [task.path, trial_name, trials_dir, install_only, job_id, user_agent],
        ['/task', 'native-tenant%3A%3Ar-1', '/trials', false, null, null],
      );
    },
  ],
  [
    'what one rollout does to its configuration reaches neither the next nor the caller’s objects',
    () => {
      const given = structuredClone(tables);
      const options = compileNativeOptions(given);
      const spoilt = nativeTrialConfig(requestFor('/task'), options, at);
      spoilt.agent.env['TEAM'] = 'blue';
      spoilt.agent.skills.push('more');
      spoilt.agent.mcp_servers.length = 0;
      spoilt.environment.env['SECRET_KEY'] = 'other';
      (spoilt.environment.kwargs['nested'] as number[]).push(2);
      (spoilt.agent.kwargs['llm_kwargs'] as { extra_body: Record<string, unknown> }).extra_body[
        'top_k'
      ] = 0;
      assert.deepEqual(nativeTrialConfig(requestFor('/task'), options, at), configOf(tables));
      assert.deepEqual(given, tables);
    },
  ],
]);
