/** Every binding, one row each. A row that needs what is not there yet is refused with that; to let it in is to change its row. */
import type { Binding } from './binding.ts';

/** The client's two tables of options each may name an endpoint, and the one of single calls wins. */
const clientTables = ['llm_kwargs', 'llm_call_kwargs'];
const clientSlots = [
  'api_base',
  'api_key',
  'base_url',
  'extra_body.stream',
  'extra_headers.authorization',
];

const chatKwargs = {
  protocol: 'OpenAI Chat Completions',
  wiring: 'kwargs',
  callsFromSandbox: false,
  ownedKwargs: [
    'api_base',
    ...clientTables.flatMap((table) => clientSlots.map((slot) => `${table}.${slot}`)),
  ],
  ownedEnv: [],
  pinnedVersion: null,
  evaluates: true,
  trains: true,
  needs: null,
} as const satisfies Partial<Binding>;

/** Agents whose program speaks another dialect than chat completions. */
const ofTheGateway = {
  wiring: 'env',
  isCustom: false,
  callsFromSandbox: true,
  ownedKwargs: [],
  defaults: {},
  evaluates: true,
  trains: false,
  note: 'its dialect is translated, and what the model sampled is not what the agent reads',
} as const satisfies Partial<Binding>;

export const bindings: readonly Binding[] = [
  {
    ...chatKwargs,
    name: 'terminus-2',
    isCustom: false,
    // A trainer wants the conversation as it was, and a controller's address may know one model only.
    defaults: { enable_summarize: false, proactive_summarization_threshold: 0 },
    note: null,
  },
  {
    ...{ name: 'oracle', protocol: 'none', wiring: 'none', isCustom: false },
    ...{ callsFromSandbox: false, ownedKwargs: [], ownedEnv: [], defaults: {} },
    ...{ pinnedVersion: null, evaluates: true, trains: false, needs: null },
    note: 'the oracle calls no model: its rollouts train nothing',
  },
  {
    ...chatKwargs,
    name: 'custom-chat-completions',
    isCustom: true,
    defaults: {},
    note: 'the agent must send all model calls to api_base with the key of llm_kwargs; nothing checks that it does',
  },
  {
    ...{ ...chatKwargs, name: 'custom-installed-chat-completions', wiring: 'env', isCustom: true },
    ...{ callsFromSandbox: true, ownedKwargs: [], defaults: {} },
    ownedEnv: ['OPENAI_API_KEY', 'OPENAI_BASE_URL'],
    note: 'the agent must send all model calls to OPENAI_BASE_URL with OPENAI_API_KEY; nothing checks that it does',
  },
  {
    ...ofTheGateway,
    ...{ name: 'codex', protocol: 'OpenAI Responses', pinnedVersion: '0.146.0' },
    ownedEnv: [
      'CODEX_AUTH_JSON_PATH',
      'CODEX_FORCE_AUTH_JSON',
      'OPENAI_API_KEY',
      'OPENAI_BASE_URL',
    ],
    needs: 'the dialect OpenAI Responses of the gateway',
  },
  {
    ...ofTheGateway,
    ...{ name: 'opencode', protocol: 'OpenAI Responses', pinnedVersion: '1.18.9' },
    ownedKwargs: ['opencode_config.provider.openai.options.baseURL'],
    ownedEnv: ['OPENAI_API_KEY', 'OPENAI_BASE_URL'],
    needs: 'the dialect OpenAI Responses of the gateway',
  },
  {
    ...ofTheGateway,
    ...{ name: 'claude-code', protocol: 'Anthropic Messages', pinnedVersion: '2.1.220' },
    ownedEnv: ['ANTHROPIC_API_KEY', 'ANTHROPIC_BASE_URL', 'CLAUDE_FORCE_OAUTH'],
    needs: 'the dialect Anthropic Messages of the gateway',
  },
];

/** Names of those that can be used, sorted. */
export const usableBindings: readonly string[] = bindings
  .filter(({ needs }) => needs === null)
  .map(({ name }) => name)
  .sort();
