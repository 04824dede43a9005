/**
 * An engine that is asked in messages and asks its own engine in ids: those that the rollout's session makes of the messages. What comes back are parts of text,
 * thoughts and calls, with the ids that they are made of, as from any engine.
 */
import { changedEngine } from '../../engines/changed-engine.ts';
import type { Engine, GenerateInput, GenerateRequest } from '../../engines/engine.ts';
import type { ModelCall } from '../../engines/model-call.ts';
import { chatBody } from '../../engines/shared/chat-request.ts';
import { recordOf, type JsonRecord } from '../../engines/shared/json.ts';
import { raceSignal } from '../../core/race-signal.ts';
import type { Conversation } from '../../sessions/codec.ts';
import { RequestProblem } from '../dialects/dialect.ts';
import { nativeRequest } from './native-request.ts';
import type { RouteSession } from './tokens-mode.ts';
import { TokensCall } from './tokens-call.ts';

type Messages = Extract<GenerateInput, { readonly kind: 'messages' }>;

export function tokensEngine(engine: Engine, session: RouteSession): Engine {
  return changedEngine(engine, {
    generate: async (request, signal) => {
      const { input } = request;
      if (input.kind === 'tokens') return await engine.generate(request, signal);
      return await generate({ engine, session, request, input }, signal);
    },
  });
}

async function generate(
  asked: {
    readonly engine: Engine;
    readonly session: RouteSession;
    readonly request: GenerateRequest;
    readonly input: Messages;
  },
  signal: AbortSignal,
): Promise<ModelCall> {
  const { engine, session, request, input } = asked;
  const chat = chatBody({ ...request, wantsTokens: false }, input);
  const conversation = conversationOf(input, chat, session);
  const { sampling, extraBody } = nativeRequest(session.kind, chat);
  // What is rendered for a call that has ended goes unused.
  const prompt = await raceSignal(session.tokens.prompt(conversation), signal);
  const { requestId, model, isStreaming, onSend } = request;
  const call = await engine.generate(
    {
      ...{ requestId, model, isStreaming, sampling, extraBody, wantsTokens: true },
      input: { kind: 'tokens', ids: [...prompt.ids] },
      // The ids are told with the answer.
      onSend: () => onSend?.(chat),
    },
    signal,
  );
  return new TokensCall({
    ...{ call, prompt, stops: sampling.stop ?? [] },
    parser: session.codec.parser({ promptIds: prompt.ids, tools: conversation.tools }),
    onAnswer: (outputIds, message) => session.tokens.answered(prompt, outputIds, message),
  });
}

/** As the template is to see it. RequestProblem for what it would see wrongly, and for what only a chat route of the engine can keep. */
export function conversationOf(
  { messages, tools = [], toolsText }: Messages,
  chat: JsonRecord,
  { codec, templateVariables }: Pick<RouteSession, 'codec' | 'templateVariables'>,
): Conversation {
  const choice = chat['tool_choice'] ?? 'auto';
  if (choice !== 'auto' && choice !== 'none')
    throw new RequestProblem(
      'a call of a tool cannot be demanded here: the prompt is made of ids; leave tool_choice away',
      { field: 'tool_choice' },
    );
  const isWithout = choice === 'none';
  const given = recordOf(chat['chat_template_kwargs']) ?? {};
  for (const [name, fixed] of Object.entries(codec.fixedVariables))
    if (Object.hasOwn(given, name) && JSON.stringify(given[name]) !== JSON.stringify(fixed))
      throw new RequestProblem(
        `chat_template_kwargs.${name} is fixed to ${JSON.stringify(fixed)} by the family of the model`,
        { field: `chat_template_kwargs.${name}` },
      );
  return {
    ...{ messages, tools: isWithout ? [] : tools },
    ...(toolsText !== undefined && !isWithout && { toolsText }),
    templateVariables: { ...templateVariables, ...given },
  };
}
