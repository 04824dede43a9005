import type { FastifyInstance } from 'fastify';
import { checkIds } from '../body.ts';
import type { EngineParts } from '../engine-parts.ts';
import { Exchange, requestIdOf } from '../exchange.ts';
import { Refusal } from '../refusal.ts';
import { messageOf } from '../../../core/errors.ts';
import { chatAnswer, ChatStream } from './chat-answer.ts';
import { readChatRequest, type ChatRequestBody } from './chat-request.ts';
import { checkModel } from './models.ts';

const route = '/v1/chat/completions';

export function addChatRoute(app: FastifyInstance, parts: EngineParts): void {
  app.post(route, async (incoming, reply) => {
    const request = readChatRequest(incoming.body, parts.dialect);
    checkModel(request.model, parts);
    const exchange = new Exchange(parts, reply, {
      route,
      id: requestIdOf(request.requestId ?? incoming.headers['x-request-id'], 'chatcmpl-'),
      promptIds: promptIdsOf(request, parts),
      sampling: request.sampling,
      defaultMaxTokens: null,
      topLogprobs: request.topLogprobs,
      isStreaming: request.isStreaming,
    });
    const generation = await exchange.begin();
    const options = {
      generation,
      request,
      vocabulary: parts.model.vocabulary,
      model: parts.model.name,
      createdS: Math.floor(generation.startedMs / 1000),
    };
    if (request.isStreaming) await exchange.stream(generation, new ChatStream(options));
    else await exchange.respond(generation, () => chatAnswer(options));
  });
}

function promptIdsOf(
  { messages, inputIds, tools }: ChatRequestBody,
  parts: EngineParts,
): readonly number[] {
  if (inputIds !== null) {
    checkIds(inputIds, parts.model.vocabulary.size);
    return inputIds;
  }
  try {
    return parts.model.render({ messages: messages ?? [], tools });
  } catch (error) {
    throw new Refusal(400, `messages: ${messageOf(error)}`);
  }
}
