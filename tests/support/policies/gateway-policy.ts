/** A policy for the mock engine that answers clients of the gateway: text that is hard to keep exact, thoughts, and calls of tools where there are some. */
import { seededRandom } from '../random.ts';
import { hostileText, marker } from './corpus-policy.ts';

interface Request {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  readonly tools: readonly { readonly function: { readonly name: string } }[];
  /** Assistant messages so far. */
  readonly turn: number;
}

interface Reply {
  readonly content: string;
  readonly reasoning?: string;
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: unknown }[];
}

export default function gatewayPolicy({ messages, tools, turn }: Request): Reply {
  const [, item] = /corpus item (\d+)/.exec(JSON.stringify(messages)) ?? [];
  if (item === undefined) throw new Error('the messages name no item of the corpus');
  const random = seededRandom(Number(item) * 1_000 + turn + 1);
  const [tool] = tools;
  const count = tool === undefined || random() < 0.6 ? 0 : random() < 0.7 ? 1 : 2;
  return {
    content: `${marker(Number(item), turn)} ${hostileText(random, 14)}`,
    ...(random() < 0.3 && { reasoning: `hm, ${hostileText(random, 8)}` }),
    ...(count > 0 && {
      toolCalls: Array.from({ length: count }, () => ({
        name: tool?.function.name ?? '',
        arguments: { command: hostileText(random, 6) },
      })),
    }),
  };
}
