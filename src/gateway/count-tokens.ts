/** How many tokens a prompt has, by the tokenizer of the model itself: asked of the upstream where it offers that, never guessed. */
import type { Dispatcher } from 'undici';
import type { ChatMessage, ToolDefinition } from '../engines/chat-message.ts';
import { RequestProblem } from './dialects/dialect.ts';
import type { LiveRoute } from './live-route.ts';
import { conversationOf } from './tokens/tokens-engine.ts';

export interface CountedPrompt {
  readonly model: string | null;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ToolDefinition[];
}

const longestAnswer = 64 * 1024 * 1024;

/** RequestProblem when the upstream does not count prompts of messages. */
export async function countTokens(
  prompt: CountedPrompt,
  {
    route,
    upstream,
    signal,
  }: { readonly route: LiveRoute; readonly upstream: Dispatcher; readonly signal: AbortSignal },
): Promise<number> {
  const body = JSON.stringify({
    ...(prompt.model !== null && { model: prompt.model }),
    messages: prompt.messages,
    ...(prompt.tools.length > 0 && { tools: prompt.tools }),
    add_generation_prompt: true,
  });
  for (const path of pathsOf(route)) {
    const answer = await upstream
      .request({
        ...{ origin: route.endpoint.origin, path, method: 'POST', body, signal },
        headers: {
          'content-type': 'application/json',
          ...(route.authorization !== null && { authorization: route.authorization }),
        },
      })
      .catch(() => null);
    signal.throwIfAborted();
    const count = answer === null ? null : await countIn(answer);
    signal.throwIfAborted();
    if (count !== null) return count;
  }
  throw new RequestProblem(
    'tokens are not counted: the upstream has no /tokenize that takes messages',
    {
      kind: 'not-found',
    },
  );
}

/** The same where the prompt is made of ids here. CONVERSATION_INVALID. */
export async function countHere(prompt: CountedPrompt, route: LiveRoute): Promise<number> {
  const session = await route.session();
  const { messages, tools } = prompt;
  const ids = await session.renderer.render(
    conversationOf({ kind: 'messages', messages, tools }, route.pins ?? {}, session),
  );
  return ids.length;
}

/** Below the chat address, and where vLLM has it: beside `/v1`. */
function pathsOf({ endpoint }: LiveRoute): readonly string[] {
  const below = endpoint.pathTo('/tokenize');
  return [...new Set([below, below.replace(/\/v1\/tokenize(?=\?|$)/, '/tokenize')])];
}

async function countIn({ statusCode, body }: Dispatcher.ResponseData): Promise<number | null> {
  try {
    if (statusCode !== 200) {
      await body.dump();
      return null;
    }
    const pieces: Buffer[] = [];
    let size = 0;
    for await (const piece of body as AsyncIterable<Buffer>) {
      size += piece.length;
      if (size > longestAnswer) return null;
      pieces.push(piece);
    }
    const answer = JSON.parse(Buffer.concat(pieces).toString('utf8')) as {
      readonly count?: unknown;
    };
    return Number.isSafeInteger(answer.count) ? (answer.count as number) : null;
  } catch {
    return null;
  }
}
