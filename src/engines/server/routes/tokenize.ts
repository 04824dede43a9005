/** `/tokenize` and `/detokenize`: SGLang's and vLLM's bodies differ in names only, so one route takes both. */
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { ChatMessage, ToolDefinition } from '../../chat-message.ts';
import { checkIds, readBody, tokenIds } from '../body.ts';
import type { EngineParts } from '../engine-parts.ts';
import { Refusal } from '../refusal.ts';
import { textOf } from '../token-views.ts';

const texts = z.union([z.string(), z.array(z.string())]);
const tokenizeSchema = z.looseObject({
  prompt: texts.nullish(),
  text: texts.nullish(),
  messages: z.array(z.looseObject({ role: z.string() })).nullish(),
  tools: z.array(z.looseObject({ type: z.string() })).nullish(),
  return_token_strs: z.boolean().nullish(),
});
const detokenizeSchema = z.looseObject({
  tokens: z.union([tokenIds, z.array(tokenIds)]),
  skip_special_tokens: z.boolean().nullish(),
});

export function addTokenizeRoutes(app: FastifyInstance, parts: EngineParts): void {
  const { model, contextTokens } = parts;
  const { vocabulary } = model;

  for (const url of ['/tokenize', '/v1/tokenize'])
    app.post(url, (incoming) => {
      const body = readBody(tokenizeSchema, incoming.body);
      const text = body.prompt ?? body.text ?? null;
      if (text === null && !body.messages)
        throw new Refusal(400, 'one of prompt, text and messages is needed');
      const encode = (part: string): number[] => vocabulary.encode(part, { parsesSpecial: true });
      const tokens =
        text === null
          ? model.render({
              messages: body.messages as readonly unknown[] as readonly ChatMessage[],
              tools: (body.tools ?? []) as readonly unknown[] as readonly ToolDefinition[],
            })
          : typeof text === 'string'
            ? encode(text)
            : text.map(encode);
      const isBatch = Array.isArray(text);
      return {
        tokens,
        count: isBatch ? (tokens as number[][]).map(({ length }) => length) : tokens.length,
        max_model_len: contextTokens,
        ...(body.return_token_strs === true &&
          !isBatch && { token_strs: (tokens as number[]).map((id) => textOf(id, vocabulary)) }),
      };
    });

  for (const url of ['/detokenize', '/v1/detokenize'])
    app.post(url, (incoming) => {
      const body = readBody(detokenizeSchema, incoming.body);
      const decode = (ids: readonly number[]): string => {
        checkIds(ids, vocabulary.size);
        return vocabulary.decode(ids, { skipsSpecial: body.skip_special_tokens === true });
      };
      const { tokens } = body;
      const isBatch = Array.isArray(tokens[0]);
      const text = isBatch ? (tokens as number[][]).map(decode) : decode(tokens as number[]);
      // vLLM calls it prompt, SGLang text.
      return { text, prompt: text };
    });
}
