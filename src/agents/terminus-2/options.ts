/** The agent's own options (`agent.kwargs`), in Harbor's spelling, compiled once; values may come from flags, so text that spells a number passes for one. */
import { z } from 'zod';
import { RolloutError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { laxBoolean, laxInteger, laxNumber } from '../../wire/harbor/lax.ts';
import type { AgentOptions } from '../agent.ts';
import { compileCallFields, type CallFields } from './call-fields.ts';
import { modelInfoProblems, modelInfoSchema, type ModelInfo } from './model-info.ts';

/** Harbor's: practically no limit. */
const defaultMaxTurns = 1_000_000;

const laxText = z.preprocess(
  (value) => (typeof value === 'number' ? String(value) : value),
  z.string(),
);
const turns = laxInteger.refine((count) => count >= 1, 'must be at least 1');
const cells = laxInteger.refine((count) => count >= 1, 'must be a positive whole number');
const seconds = laxNumber.refine((value) => value >= 0, 'must not be negative');
const record = z.record(z.string(), z.unknown());

const schema = z.strictObject({
  max_turns: turns.optional(),
  max_episodes: turns.optional(),
  episodes: turns.optional(),
  suppress_max_turns_warning: laxBoolean.default(false),
  parser_name: z.enum(['json', 'xml']).default('json'),
  api_base: z.string().optional(),
  temperature: laxNumber.optional(),
  reasoning_effort: laxText.optional(),
  collect_rollout_details: laxBoolean.default(false),
  session_id: laxText.optional(),
  enable_summarize: laxBoolean.default(true),
  proactive_summarization_threshold: laxInteger
    .refine((count) => count >= 0, 'must not be negative')
    .default(8000),
  max_thinking_tokens: laxInteger.refine((count) => count >= 1, 'must be at least 1').optional(),
  model_info: modelInfoSchema.optional(),
  trajectory_config: z
    .strictObject({
      raw_content: laxBoolean.default(false),
      linear_history: laxBoolean.default(false),
    })
    .prefault({}),
  tmux_pane_width: cells.default(160),
  tmux_pane_height: cells.default(40),
  store_all_messages: laxBoolean.default(false),
  record_terminal_session: laxBoolean.default(true),
  interleaved_thinking: laxBoolean.default(false),
  use_responses_api: laxBoolean.default(false),
  llm_backend: z.string().default('litellm'),
  llm_kwargs: record.prefault({}),
  llm_call_kwargs: record.prefault({}),
  retry_min_wait_sec: seconds.default(4),
  retry_max_wait_sec: seconds.default(15),
});

export interface Terminus2Options {
  readonly maxTurns: number;
  readonly parser: 'json' | 'xml';
  /** As configured, with its provider; what the trajectory names. */
  readonly modelName: string;
  /** The kwarg `api_base`; null = not given. */
  readonly apiBase: string | null;
  readonly temperature: number | null;
  readonly collectsRolloutDetails: boolean;
  /** null = none configured: it is not sent then. */
  readonly sessionId: string | null;
  readonly isSummarizing: boolean;
  /** Summarise when fewer tokens than this are free; 0 = only when the engine refuses the conversation. */
  readonly summarizeBelowTokens: number;
  readonly modelInfo: ModelInfo;
  /** The document holds replies as sampled instead of what was parsed from them. */
  readonly isRaw: boolean;
  /** A summary begins a new document. */
  readonly isLinear: boolean;
  readonly paneWidth: number;
  readonly paneHeight: number;
  readonly storesMessages: boolean;
  readonly isRecording: boolean;
  /** Earlier reasoning is sent back with its reply. */
  readonly sendsReasoning: boolean;
  readonly call: CallFields;
  readonly retryWaitMs: { readonly min: number; readonly max: number };
}

/** Throws CONFIG_INVALID, which lists every problem, or MODEL_UNSPECIFIED. */
export function compileOptions({
  kwargs,
  modelName,
  logger,
}: Pick<AgentOptions, 'kwargs' | 'modelName' | 'logger'>): Terminus2Options {
  // Python's None is how a flag or a file unsets an option.
  const given = Object.fromEntries(Object.entries(kwargs).filter(([, value]) => value !== null));
  const parsed = schema.safeParse(given);
  if (!parsed.success) throw invalid(parsed.error.issues.flatMap(problemsOf));
  const fields = parsed.data;
  if (modelName === null || modelName === '') throw noModel();
  const call = compileCallFields(fields);
  const problems = [
    ...refusals(fields),
    ...call.problems,
    ...modelInfoProblems(modelName, fields.model_info ?? null),
  ];
  if (problems.length > 0) throw invalid(problems);
  return Object.freeze({
    maxTurns: maxTurns(fields, logger),
    parser: fields.parser_name,
    modelName,
    apiBase: fields.api_base ?? null,
    temperature: fields.temperature ?? null,
    collectsRolloutDetails: fields.collect_rollout_details,
    sessionId: fields.session_id ?? null,
    isSummarizing: fields.enable_summarize,
    summarizeBelowTokens: fields.proactive_summarization_threshold,
    modelInfo: fields.model_info ?? {},
    isRaw: fields.trajectory_config.raw_content,
    isLinear: fields.trajectory_config.linear_history,
    paneWidth: fields.tmux_pane_width,
    paneHeight: fields.tmux_pane_height,
    storesMessages: fields.store_all_messages,
    isRecording: fields.record_terminal_session,
    sendsReasoning: fields.interleaved_thinking,
    call: call.fields,
    retryWaitMs: {
      min: fields.retry_min_wait_sec * 1000,
      max: Math.max(fields.retry_min_wait_sec, fields.retry_max_wait_sec) * 1000,
    },
  });
}

/** Names that LiteLLM or Harbor route by, and the name that the endpoint itself knows. */
export function endpointModel(modelName: string): string {
  const at = modelName.indexOf('/');
  return at < 0 ? modelName : modelName.slice(at + 1);
}

type Fields = z.output<typeof schema>;

export interface OptionProblem {
  /** Below `agent.kwargs`. */
  readonly name: string;
  readonly message: string;
  readonly remedy?: string;
}

function problemsOf(issue: z.core.$ZodIssue): OptionProblem[] {
  if (issue.code !== 'unrecognized_keys')
    return [{ name: issue.path.join('.'), message: issue.message.replace(/^Invalid input: /, '') }];
  const at = issue.path.map((part) => `${String(part)}.`).join('');
  const known = at === '' ? Object.keys(schema.shape) : ['raw_content', 'linear_history'];
  return issue.keys.map((key) => ({
    name: `${at}${key}`,
    message: 'terminus-2 has no such option',
    remedy: `Use one of: ${known.join(', ')}.`,
  }));
}

function refusals(fields: Fields): OptionProblem[] {
  const problems: OptionProblem[] = [];
  if (fields.llm_backend !== 'litellm')
    problems.push({
      name: 'llm_backend',
      message: `the backend ${JSON.stringify(fields.llm_backend)} is not available`,
      remedy: 'Leave it out and name an OpenAI-compatible address as api_base.',
    });
  if (fields.use_responses_api)
    problems.push({
      name: 'use_responses_api',
      message: 'the agent speaks chat completions only',
      remedy: 'Leave it out.',
    });
  return problems;
}

function maxTurns(fields: Fields, logger: Logger): number {
  for (const alias of ['max_episodes', 'episodes'] as const)
    if (fields[alias] !== undefined)
      logger.log('warn', `terminus-2: the option ${alias} is deprecated; use max_turns`);
  const limit = fields.max_turns ?? fields.max_episodes ?? fields.episodes;
  if (limit !== undefined && !fields.suppress_max_turns_warning)
    logger.log('warn', `terminus-2: the agent is stopped after ${limit} turns`);
  return limit ?? defaultMaxTurns;
}

function invalid(problems: readonly OptionProblem[]): RolloutError {
  const [first] = problems;
  const line = ({ name, message, remedy }: OptionProblem): string =>
    `[agent.kwargs.${name}]: ${message}${remedy === undefined ? '' : ` — ${remedy}`}`;
  return new RolloutError(
    'CONFIG_INVALID',
    problems.length === 1 && first !== undefined
      ? first.message
      : `${problems.length} problems: ${problems.map(({ name, message }) => `${name}: ${message}`).join('; ')}`,
    {
      phase: 'config',
      field: `agent.kwargs.${first?.name ?? ''}`,
      remedy:
        problems.length === 1
          ? (first?.remedy ?? 'Correct the option.')
          : 'Correct these options of terminus-2.',
      ...(problems.length > 1 && { detail: problems.map(line).join('\n') }),
    },
  );
}

function noModel(): RolloutError {
  return new RolloutError('MODEL_UNSPECIFIED', 'terminus-2 needs the name of a model', {
    phase: 'config',
    field: 'agent.model_name',
    remedy: 'Pass -m openai/NAME, with the name that the endpoint knows.',
  });
}
