import assert from 'node:assert/strict';
import { aiderCli } from '../../../src/agents/aider/aider-cli.ts';
import { claudeCli } from '../../../src/agents/claude-code/claude-cli.ts';
import { codexCli } from '../../../src/agents/codex/codex-cli.ts';
import { miniCli } from '../../../src/agents/mini-swe-agent/mini-cli.ts';
import { opencodeCli } from '../../../src/agents/opencode/opencode-cli.ts';
import { qwenCli } from '../../../src/agents/qwen-coder/qwen-cli.ts';
import { bindings, usableBindings } from '../../../src/backends/native/bindings/binding-table.ts';
import { compileNativeOptions } from '../../../src/backends/native/native-options.ts';
import {
  configOf,
  custom,
  installed,
  lines,
  refused,
  type Fields,
  type Line,
} from './contract-lines.ts';

const modelVariables = ['OPENAI_API_BASE', 'OPENAI_API_KEY', 'OPENAI_BASE_URL'];

const wired = (options: Fields) => configOf({ allow_unverified_agent: true, ...options }).agent;

lines('bindings', [
  [
    'that can be used are aider, claude-code, codex, custom-chat-completions, custom-installed-chat-completions, mini-swe-agent, opencode, oracle, qwen-coder and terminus-2',
    () => {
      assert.deepEqual(usableBindings, [
        ...['aider', 'claude-code', 'codex', 'custom-chat-completions'],
        installed,
        ...['mini-swe-agent', 'opencode', 'oracle', 'qwen-coder', 'terminus-2'],
      ]);
    },
  ],
  [
    'train where they speak to a model, whatever its dialect, and say why not elsewhere',
    () => {
      for (const { protocol, trains, evaluates, note } of bindings) {
        assert.deepEqual([evaluates, trains], [true, protocol !== 'none']);
        assert.ok(trains || note !== null, 'why not');
      }
    },
  ],
  [
    'of programs are pinned, and another version is refused',
    () => {
      const found = bindings.filter(({ pinnedVersion }) => pinnedVersion !== null);
      assert.deepEqual(
        found.map(({ name, pinnedVersion }) => [name, pinnedVersion]),
        [
          ['codex', '0.171.0'],
          ['qwen-coder', '0.15.10'],
          ['opencode', '1.18.33'],
          ['mini-swe-agent', '2.4.6'],
          ['aider', '0.86.2'],
          ['claude-code', '2.1.332'],
        ],
      );
      for (const { name, pinnedVersion, needs } of found) {
        if (needs !== null) refused({ agent: name }, new RegExp(`${name} needs ${needs}`))();
        else {
          const other = { agent: name, agent_options: { version: '0.1.0' } };
          refused(other, new RegExp(`version: ${name} is proven with ${pinnedVersion} only`))();
          const { kwargs } = wired({ agent: name, agent_options: { version: pinnedVersion } });
          assert.deepEqual(kwargs, { version: pinnedVersion });
        }
      }
    },
  ],
  [
    'of programs own what the gateway of a run is told, and OpenCode’s settings of the model',
    () => {
      const settings = { opencode_config: { provider: {} }, engine_kind: 'vllm', capture: false };
      refused(
        { agent: 'opencode', agent_options: settings },
        /kwargs\.capture: .*kwargs\.engine_kind: .*kwargs\.opencode_config\.provider: comes from/,
      )();
    },
  ],
  [
    'of programs are wired by the address and the key of the rollout alone',
    () => {
      for (const name of [
        'aider',
        'codex',
        'claude-code',
        'mini-swe-agent',
        'opencode',
        'qwen-coder',
      ])
        assert.deepEqual(wired({ agent: name }).env, {
          OPENAI_BASE_URL: 'http://127.0.0.1:9/v1',
          OPENAI_API_KEY: 'route-key-1234',
        });
    },
  ],
  [
    'of Claude Code own 23 variables of other accounts, and three of the rollout',
    () => {
      const owned = bindings.find(({ name }) => name === 'claude-code')?.ownedEnv ?? [];
      assert.equal(owned.length, 26);
      assert.deepEqual(owned, claudeCli.ownedVariables.concat(modelVariables).sort());
      for (const name of owned)
        refused(
          { agent_config: { name: 'claude-code', env: { [name]: 'x' } } },
          new RegExp(`env\\.${name}: comes from the controller`),
        )();
    },
  ],
  [
    'of aider, Codex, mini-swe-agent, OpenCode and Qwen Code own the variables of their accounts',
    () => {
      for (const cli of [aiderCli, codexCli, miniCli, opencodeCli, qwenCli]) {
        const owned = bindings.find(({ name }) => name === cli.name)?.ownedEnv ?? [];
        assert.deepEqual(owned, cli.ownedVariables.concat(modelVariables).sort());
      }
    },
  ],
  ...(
    [
      [{ CLAUDE_CODE_USE_BEDROCK: ' 1 ' }, /while CLAUDE_CODE_USE_BEDROCK of/],
      [{ AWS_BEARER_TOKEN_BEDROCK: 'x' }, /while AWS_BEARER_TOKEN_BEDROCK of/],
      [
        { CLAUDE_CODE_USE_BEDROCK: '1', AWS_BEARER_TOKEN_BEDROCK: 'x' },
        /while AWS_BEARER_TOKEN_BEDROCK and CLAUDE_CODE_USE_BEDROCK of/,
      ],
      [{ CLAUDE_CODE_USE_BEDROCK: '0', AWS_BEARER_TOKEN_BEDROCK: ' ' }, null],
    ] as const
  ).map(([variables, words]): Line => [
    `claude-code is ${words === null ? 'let in' : 'refused'} on a machine with ${JSON.stringify(variables)}`,
    () => {
      const compile = (): unknown => compileNativeOptions({ agent: 'claude-code' }, variables);
      if (words === null) compile();
      else assert.throws(compile, { code: 'CONFIG_INVALID', message: words });
    },
  ]),
  [
    'terminus-2 is wired by its options',
    () => {
      const { kwargs, env } = wired({});
      assert.deepEqual(
        [kwargs['api_base'], kwargs['llm_kwargs'], env],
        ['http://127.0.0.1:9/v1', { api_key: 'route-key-1234', extra_body: { stream: false } }, {}],
      );
    },
  ],
  [
    'the oracle is wired nowhere, and needs no address',
    () => {
      const { kwargs, env } = configOf({ agent: 'oracle' }, { route: null }).agent;
      assert.deepEqual([kwargs, env], [{}, {}]);
    },
  ],
  [
    'custom-chat-completions is wired by its options, without the defaults of terminus-2',
    () => {
      const { import_path, name, kwargs, env } = wired(
        custom('custom-chat-completions', { kwargs: { depth: 2 } }),
      );
      assert.deepEqual([import_path, name, env], ['my_agents.solver:Solver', null, {}]);
      assert.deepEqual(kwargs, {
        depth: 2,
        api_base: 'http://127.0.0.1:9/v1',
        llm_kwargs: { api_key: 'route-key-1234', extra_body: { stream: false } },
      });
    },
  ],
  [
    'custom-installed-chat-completions is wired by its variables only',
    () => {
      const { kwargs, env } = wired(
        custom(installed, { env: { ANTHROPIC_API_KEY: 'other' }, kwargs: { depth: 2 } }),
      );
      assert.deepEqual(kwargs, { depth: 2 });
      assert.deepEqual(env, {
        ANTHROPIC_API_KEY: 'other',
        OPENAI_BASE_URL: 'http://127.0.0.1:9/v1',
        OPENAI_API_KEY: 'route-key-1234',
      });
    },
  ],
  [
    'an agent that is not verified is refused at construction, and let in where that is allowed',
    () => {
      const options = (name: string) =>
        bindings.find((one) => one.name === name)?.isCustom === true
          ? custom(name)
          : { agent: name };
      for (const { name, isVerified } of bindings) {
        const compile = () => configOf(options(name));
        if (isVerified) compile();
        else
          refused(options(name), new RegExp(`allow_unverified_agent: ${name} is not verified`))();
        configOf({ ...options(name), allow_unverified_agent: true });
      }
      assert.deepEqual(
        bindings.filter(({ isVerified }) => !isVerified).map(({ name }) => name),
        ['opencode', 'aider'],
      );
    },
  ],
  [
    'an unknown agent is refused, with the names that there are, sorted',
    refused(
      { agent: 'cline-cli' },
      /"cline-cli"; use one of aider, claude-code, codex, custom-chat-completions, custom-installed-chat-completions, mini-swe-agent, opencode, oracle, qwen-coder, terminus-2$/,
    ),
  ],
  [
    'an unknown binding is refused, with the names',
    refused(
      { binding: 'magic', agent_config: { import_path: 'a:B' } },
      /binding: .*"magic"; use one of/,
    ),
  ],
  [
    'an agent of a name has the binding of its name only',
    refused(
      { agent: 'terminus-2', binding: 'oracle' },
      /the agent terminus-2 has the binding terminus-2 only/,
    ),
  ],
  [
    'an agent of a name may say its own binding',
    () => {
      configOf({ agent: 'terminus-2', binding: 'terminus-2' });
    },
  ],
  [
    'an import path needs a binding',
    refused(
      { agent: 'a.b:C' },
      /needs custom-chat-completions or custom-installed-chat-completions/,
    ),
  ],
  [
    'an import path needs a custom binding',
    refused({ agent: 'a.b:C', binding: 'terminus-2' }, /needs custom-chat-completions or/),
  ],
  [
    'a custom binding needs an import path',
    refused({ agent: 'oracle', binding: installed }, /needs an agent by import path/),
  ],
  [
    'an import path is module:Class',
    refused(
      { binding: installed, agent_config: { import_path: 'solver' } },
      /an import path is module:Class/,
    ),
  ],
  ...[
    'terminus_2.terminus_2:Terminus2',
    'oracle:OracleAgent',
    'installed.claude_code:ClaudeCode',
  ].map((name): Line => [
    `Harbor’s own harbor.agents.${name} does not come back by its import path`,
    refused(
      { agent: `harbor.agents.${name}`, binding: installed },
      /Harbor's own agent: name it instead/,
    ),
  ]),
  [
    'an agent of the user’s in a module that only looks like Harbor’s is let in',
    () => {
      configOf({ agent: 'harbor.agents_of_ours:Solver', binding: installed });
    },
  ],
  [
    'slots of a binding in kwargs are refused at construction, sorted',
    refused(
      {
        agent_options: {
          llm_kwargs: { api_key: 'k', extra_body: { stream: true } },
          api_base: 'u',
          llm_call_kwargs: { api_key: 'k', extra_headers: { Authorization: 'Bearer k' } },
        },
      },
      /kwargs\.api_base: comes.*kwargs\.llm_call_kwargs\.api_key: comes.*llm_call_kwargs\.extra_headers\.authorization: comes.*kwargs\.llm_kwargs\.api_key: comes.*kwargs\.llm_kwargs\.extra_body\.stream: comes/,
    ),
  ],
  [
    'what stands in the way of a slot is refused',
    refused(
      { agent_options: { llm_kwargs: 'text' } },
      /llm_kwargs\.api_key: comes from the controller/,
    ),
  ],
  [
    'slots of a binding in env are refused at construction, sorted',
    refused(
      custom(installed, { env: { OPENAI_BASE_URL: 'u', OPENAI_API_KEY: 'k' } }),
      /env\.OPENAI_API_KEY: comes.*env\.OPENAI_BASE_URL: comes/,
    ),
  ],
]);
