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
  isVerified: true,
  evaluates: true,
  trains: true,
  needs: null,
  forbiddenHostVariables: {},
} as const satisfies Partial<Binding>;

/** Where the model is, and what the gateway of a run is told of it: a server has its own. */
const cliKwargs = ['api_base', 'capture', 'engine_kind'];

/** Agents whose program speaks another dialect than chat completions. */
const ofTheGateway = {
  wiring: 'env',
  isCustom: false,
  callsFromSandbox: true,
  ownedKwargs: cliKwargs,
  defaults: {},
  forbiddenHostVariables: {},
  needs: null,
  isVerified: true,
  evaluates: true,
  // Samples are made of what the engine said, whatever dialect the program reads, and of each of its branches.
  trains: true,
  note: null,
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
    ...{ pinnedVersion: null, isVerified: true, evaluates: true, trains: false, needs: null },
    forbiddenHostVariables: {},
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
    ...{ name: 'codex', protocol: 'OpenAI Responses', pinnedVersion: '0.171.0' },
    ownedEnv: [
      ...['CODEX_ACCESS_TOKEN', 'CODEX_API_KEY', 'CODEX_AUTH_JSON_PATH', 'CODEX_FORCE_AUTH_JSON'],
      ...['CODEX_HOME', 'OPENAI_API_BASE', 'OPENAI_API_KEY', 'OPENAI_BASE_URL'],
    ],
  },
  {
    ...ofTheGateway,
    ...{ name: 'qwen-coder', protocol: 'OpenAI Chat Completions', pinnedVersion: '0.15.10' },
    ownedEnv: [
      ...['DASHSCOPE_API_KEY', 'GEMINI_API_KEY', 'OPENAI_API_BASE', 'OPENAI_API_KEY'],
      ...['OPENAI_BASE_URL', 'OPENAI_MODEL', 'QWEN_CODE_API_TIMEOUT_MS', 'QWEN_HOME'],
      ...['QWEN_MODEL', 'QWEN_RUNTIME_DIR'],
    ],
    trains: true,
    note: null,
  },
  {
    ...ofTheGateway,
    ...{ name: 'opencode', protocol: 'OpenAI Chat Completions', pinnedVersion: '1.18.33' },
    ownedKwargs: [
      ...cliKwargs,
      ...['disabled_providers', 'enabled_providers', 'model', 'provider', 'small_model'].map(
        (name) => `opencode_config.${name}`,
      ),
    ],
    ownedEnv: [
      ...['OPENAI_API_BASE', 'OPENAI_API_KEY', 'OPENAI_BASE_URL', 'OPENCODE_API_KEY'],
      ...['OPENCODE_AUTH_CONTENT', 'OPENCODE_CONFIG', 'OPENCODE_CONFIG_CONTENT'],
      ...['OPENCODE_CONFIG_DIR', 'OPENCODE_CONSOLE_TOKEN'],
    ],
    // Much of what it asks for beside its turns is a matter of settings, and those in the folder of the task count too.
    isVerified: false,
    trains: true,
    note: null,
  },
  {
    ...ofTheGateway,
    ...{ name: 'mini-swe-agent', protocol: 'OpenAI Chat Completions', pinnedVersion: '2.4.6' },
    ownedEnv: [
      ...['LITELLM_MODEL_REGISTRY_PATH', 'LITELLM_PROXY_API_BASE', 'LITELLM_PROXY_API_KEY'],
      ...['MSWEA_API_KEY', 'MSWEA_CONFIG_DIR', 'MSWEA_GLOBAL_CONFIG_DIR'],
      ...['MSWEA_MINI_CONFIG_PATH', 'MSWEA_MODEL_API_KEY', 'MSWEA_MODEL_NAME', 'OPENAI_API_BASE'],
      ...['OPENAI_API_KEY', 'OPENAI_BASE_URL', 'OPENAI_ORGANIZATION', 'OPENAI_ORG_ID'],
      'OPENAI_PROJECT_ID',
    ],
    trains: true,
    note: null,
  },
  {
    ...ofTheGateway,
    ...{ name: 'aider', protocol: 'OpenAI Chat Completions', pinnedVersion: '0.86.2' },
    ownedEnv: [
      ...['AIDER_API_KEY', 'AIDER_CONFIG', 'AIDER_EDITOR_MODEL', 'AIDER_ENV_FILE', 'AIDER_MODEL'],
      ...['AIDER_MODEL_METADATA_FILE', 'AIDER_MODEL_SETTINGS_FILE', 'AIDER_OPENAI_API_BASE'],
      ...['AIDER_OPENAI_API_KEY', 'AIDER_SET_ENV', 'AIDER_WEAK_MODEL', 'OPENAI_API_BASE'],
      ...['OPENAI_API_KEY', 'OPENAI_BASE_URL', 'OPENAI_ORGANIZATION', 'OPENAI_ORG_ID'],
      'OPENAI_PROJECT_ID',
    ],
    // Settings in the folder of the task count too, such as a command that is run after an edit.
    isVerified: false,
    trains: true,
    note: null,
  },
  {
    ...ofTheGateway,
    ...{ name: 'claude-code', protocol: 'Anthropic Messages', pinnedVersion: '2.1.332' },
    ownedEnv: [
      ...['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_BASE_URL'],
      ...['ANTHROPIC_FOUNDRY_API_KEY', 'ANTHROPIC_FOUNDRY_BASE_URL', 'ANTHROPIC_FOUNDRY_RESOURCE'],
      ...['ANTHROPIC_SMALL_FAST_MODEL_AWS_REGION', 'ANTHROPIC_VERTEX_BASE_URL'],
      ...['ANTHROPIC_VERTEX_PROJECT_ID', 'AWS_ACCESS_KEY_ID', 'AWS_BEARER_TOKEN_BEDROCK'],
      ...['AWS_PROFILE', 'AWS_REGION', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'],
      ...['CLAUDE_CODE_OAUTH_TOKEN', 'CLAUDE_CODE_USE_BEDROCK', 'CLAUDE_CODE_USE_FOUNDRY'],
      ...['CLAUDE_CODE_USE_VERTEX', 'CLAUDE_FORCE_OAUTH', 'CLOUD_ML_REGION'],
      ...['GOOGLE_APPLICATION_CREDENTIALS', 'GOOGLE_CLOUD_PROJECT'],
      ...['OPENAI_API_BASE', 'OPENAI_API_KEY', 'OPENAI_BASE_URL'],
    ],
    forbiddenHostVariables: { CLAUDE_CODE_USE_BEDROCK: '1', AWS_BEARER_TOKEN_BEDROCK: null },
  },
];

/** Names of those that can be used, sorted. */
export const usableBindings: readonly string[] = bindings
  .filter(({ needs }) => needs === null)
  .map(({ name }) => name)
  .sort();
