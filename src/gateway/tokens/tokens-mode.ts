/** The second way to an upstream: the gateway makes the prompt's ids itself, and the engine is asked in ids. */
import { RolloutError } from '../../core/errors.ts';
import type { ChatCodec } from '../../sessions/codec.ts';
import type { MessageMatcher } from '../../sessions/miles/message-matcher.ts';
import type { PromptRenderer } from '../../sessions/prompts/prompt-renderer.ts';
import { TokenSession } from '../../sessions/prompts/token-session.ts';
import type { TokenEngineKind } from './native-request.ts';

/** What all rollouts of a gateway have of it. */
export interface TokensMode {
  readonly kind: TokenEngineKind;
  /** Whether routes go this way that do not say which. */
  readonly isDefault: boolean;
  /** The words of the model; asked before the first call. CONFIG_INVALID. */
  words(): Promise<ModelWords>;
  /** For the template, below what requests say. */
  readonly templateVariables: Readonly<Record<string, unknown>>;
}

export interface ModelWords {
  readonly codec: ChatCodec;
  readonly renderer: PromptRenderer;
  readonly matches: MessageMatcher;
}

/** One rollout's. */
export interface RouteSession extends ModelWords {
  readonly kind: TokenEngineKind;
  readonly templateVariables: Readonly<Record<string, unknown>>;
  readonly tokens: TokenSession;
}

export async function openRouteSession(mode: TokensMode): Promise<RouteSession> {
  const { kind, templateVariables } = mode;
  const words = await mode.words();
  return { kind, templateVariables, ...words, tokens: new TokenSession(words) };
}

/** Where an engine is whose chat address this is. CONFIG_INVALID for one that does not end as such addresses do. */
export function engineUrlOf(chatUrl: string): string {
  const match = /^([^?#]*?)\/v1\/?(\?[^#]*)?$/.exec(chatUrl);
  if (match !== null) return `${match[1] ?? ''}${match[2] ?? ''}`;
  throw new RolloutError('CONFIG_INVALID', 'the chat address is not that of an engine', {
    ...{ phase: 'model-call', field: 'chat_completions_url' },
    remedy: 'Send an address that ends in /v1, or serve with gateway.mode = "relay".',
  });
}
