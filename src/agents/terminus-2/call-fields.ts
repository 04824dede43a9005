/** What every request of the agent carries beyond model and messages: `llm_kwargs`, `llm_call_kwargs` and the options that become fields of the body. */

export interface CallFields {
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  /** From `llm_kwargs.api_key`; null = not given. */
  readonly apiKey: string | null;
  /** From `timeout` (seconds): silence of the engine for longer ends a call. null = no limit. */
  readonly stallMs: number | null;
  /** `llm_kwargs` without what may hold a key, for the trajectory; null = none. */
  readonly shown: Readonly<Record<string, unknown>> | null;
}

/** Switches of the client library that Harbor uses; they change nothing here. */
const ignored = new Set(['litellm_debug', 'drop_params']);

/** They would break the request, or ask for what only that library does. */
const refused = new Set([
  'api_version',
  'custom_llm_provider',
  'fallbacks',
  'logprobs',
  'max_retries',
  'messages',
  'mock_response',
  'model',
  'n',
  'num_retries',
  'return_token_ids',
  'stream',
]);

const taken = new Set(['api_key', 'timeout', 'extra_body', 'extra_headers']);

/** Where keys are written. */
const secretFields = new Set(['api_key', 'extra_headers']);

const minThinkingTokens = 1024;

interface Options {
  readonly llm_kwargs: Readonly<Record<string, unknown>>;
  readonly llm_call_kwargs: Readonly<Record<string, unknown>>;
  readonly reasoning_effort?: string | undefined;
  readonly max_thinking_tokens?: number | undefined;
  readonly session_id?: string | undefined;
}

interface Problem {
  readonly name: string;
  readonly message: string;
  readonly remedy: string;
}

/** Fields of single calls win over those of the client, and both over ours. */
export function compileCallFields(options: Options): {
  readonly fields: CallFields;
  readonly problems: readonly Problem[];
} {
  const problems: Problem[] = [];
  const client = readKwargs('llm_kwargs', options.llm_kwargs, problems);
  const call = readKwargs('llm_call_kwargs', options.llm_call_kwargs, problems);
  const { max_thinking_tokens: thinking, session_id: session } = options;
  const shown = Object.fromEntries(
    Object.entries(options.llm_kwargs).filter(([name]) => !secretFields.has(name)),
  );
  return {
    problems,
    fields: {
      body: {
        ...(options.reasoning_effort !== undefined && {
          reasoning_effort: options.reasoning_effort,
        }),
        ...(thinking !== undefined && {
          thinking: { type: 'enabled', budget_tokens: Math.max(minThinkingTokens, thinking) },
        }),
        ...(session !== undefined && { session_id: session }),
        ...client.body,
        ...call.body,
      },
      headers: {
        ...(session !== undefined && { 'X-Session-ID': session }),
        ...client.headers,
        ...call.headers,
      },
      apiKey: call.apiKey ?? client.apiKey,
      stallMs: call.stallMs ?? client.stallMs,
      shown: Object.keys(shown).length === 0 ? null : shown,
    },
  };
}

function readKwargs(
  name: string,
  kwargs: Readonly<Record<string, unknown>>,
  problems: Problem[],
): Omit<CallFields, 'shown'> {
  const wrong = (key: string, message: string, remedy: string): void => {
    problems.push({ name: `${name}.${key}`, message, remedy });
  };
  for (const key of Object.keys(kwargs))
    if (refused.has(key)) wrong(key, 'cannot be set for this client', 'Leave it out.');
  const { api_key: key, timeout, extra_body: extra, extra_headers: headers } = kwargs;
  if (!isAbsent(key) && typeof key !== 'string')
    wrong('api_key', 'must be text', 'Write it in quotes.');
  if (!isAbsent(timeout) && !(typeof timeout === 'number' && timeout > 0))
    wrong('timeout', 'must be a number of seconds', 'Write a number above 0.');
  if (!isAbsent(extra) && !isTable(extra)) wrong('extra_body', 'must be a table', 'Correct it.');
  const isHeaders =
    isTable(headers) && Object.values(headers).every((value) => typeof value === 'string');
  if (!isAbsent(headers) && !isHeaders)
    wrong('extra_headers', 'must be a table of text', 'Correct it.');
  return {
    body: {
      ...Object.fromEntries(
        Object.entries(kwargs).filter(
          ([field]) => !ignored.has(field) && !taken.has(field) && !refused.has(field),
        ),
      ),
      ...(isTable(extra) && extra),
    },
    headers: isHeaders ? (headers as Record<string, string>) : {},
    apiKey: typeof key === 'string' ? key : null,
    stallMs: typeof timeout === 'number' ? timeout * 1000 : null,
  };
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
