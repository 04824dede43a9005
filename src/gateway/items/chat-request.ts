/** A conversation as the upstream's request. What the client does not say is not sent: the engine's own default holds. */
import type { ToolDefinition } from '../../engines/chat-message.ts';
import type { GenerateInput, GenerateRequest } from '../../engines/engine.ts';
import { RequestProblem } from '../dialects/dialect.ts';
import { chatMessages, type MessageRules } from './chat-messages.ts';
import type { AnswerFormat, Conversation } from './conversation.ts';
import type { FlatTool, ToolNames } from './tool-names.ts';

export interface UpstreamRules extends MessageRules {
  /** Newer models of OpenAI know only the second one. */
  readonly limitField: 'max_tokens' | 'max_completion_tokens';
}

export const defaultRules: UpstreamRules = {
  systemTurns: 'positional-user',
  reasoningField: 'reasoning_content',
  limitField: 'max_tokens',
};

export interface ChatRequest extends Required<Pick<GenerateRequest, 'sampling' | 'extraBody'>> {
  readonly input: Extract<GenerateInput, { readonly kind: 'messages' }>;
}

/** Throws `RequestProblem` for a conversation that asks nothing, and for a choice of tools that cannot be kept. */
export function chatRequest(
  conversation: Conversation,
  names: ToolNames,
  options: Partial<UpstreamRules> = {},
): ChatRequest {
  const rules = { ...defaultRules, ...options };
  const messages = chatMessages(conversation.items, names, rules);
  if (messages.length === 0)
    throw new RequestProblem('the conversation says nothing; give it a message with text');
  const tools = names.tools.map(toolDefinition);
  const { maxTokens, ...sampling } = conversation.sampling;
  const isRenamed = rules.limitField !== 'max_tokens' && maxTokens !== undefined;
  return {
    input: { kind: 'messages', messages, ...(tools.length > 0 && { tools }) },
    sampling: isRenamed ? sampling : conversation.sampling,
    extraBody: {
      ...(isRenamed && { [rules.limitField]: maxTokens }),
      ...toolFields(conversation, names),
      ...(conversation.format !== null && { response_format: responseFormat(conversation.format) }),
      ...(conversation.reasoningEffort !== null && {
        reasoning_effort: conversation.reasoningEffort,
      }),
    },
  };
}

function toolDefinition({ name, spec }: FlatTool): ToolDefinition {
  const { description, isStrict } = spec;
  return {
    type: 'function',
    function: {
      name,
      ...(description !== null && { description }),
      parameters: spec.form === 'custom' ? customParameters : (spec.parameters ?? noParameters),
      ...(isStrict !== null && { strict: isStrict }),
    },
  };
}

const noParameters = { type: 'object', properties: {} };
const customParameters = {
  type: 'object',
  properties: { input: { type: 'string' } },
  required: ['input'],
};

/** Engines refuse both fields beside no tools, where they mean nothing unless a call is demanded. */
function toolFields(
  { toolChoice, allowsParallelToolCalls }: Conversation,
  names: ToolNames,
): Readonly<Record<string, unknown>> {
  if (toolChoice?.kind === 'tool' && !names.has(toolChoice.tool))
    throw new RequestProblem(
      `tool_choice names the tool ${JSON.stringify(toolChoice.tool.name)}, which tools does not have; name one of them`,
      { field: 'tool_choice' },
    );
  if (names.tools.length === 0) {
    if (toolChoice?.kind !== 'required') return {};
    throw new RequestProblem('tool_choice demands a call, but there are no tools; add one', {
      field: 'tool_choice',
    });
  }
  return {
    ...(toolChoice !== null && {
      tool_choice:
        toolChoice.kind === 'tool'
          ? { type: 'function', function: { name: names.upstream(toolChoice.tool) } }
          : toolChoice.kind,
    }),
    ...(allowsParallelToolCalls !== null && { parallel_tool_calls: allowsParallelToolCalls }),
  };
}

function responseFormat(format: AnswerFormat): Readonly<Record<string, unknown>> {
  if (format.kind === 'json') return { type: 'json_object' };
  const { name, description, schema, isStrict } = format;
  return {
    type: 'json_schema',
    json_schema: { name, ...(description !== null && { description }), schema, strict: isStrict },
  };
}
