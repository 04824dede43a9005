/** Reads a `tokenizer.json` and refuses, by name, every kind whose tokens are not plain bytes. */
import { readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { messageOf, RolloutError } from '../../../core/errors.ts';
import { byteCharacters } from './byte-alphabet.ts';

const part = z.looseObject({ type: z.string() });

const tokenizerSchema = z.looseObject({
  model: z.looseObject({
    type: z.string().optional(),
    vocab: z.record(z.string(), z.number().int().nonnegative()).optional(),
    byte_fallback: z.boolean().nullish(),
    continuing_subword_prefix: z.string().nullish(),
    end_of_word_suffix: z.string().nullish(),
  }),
  added_tokens: z
    .array(
      z.looseObject({
        id: z.number().int().nonnegative(),
        content: z.string().min(1),
        special: z.boolean().default(false),
      }),
    )
    .default([]),
  normalizer: part.nullish(),
  pre_tokenizer: part.nullish(),
  post_processor: part.nullish(),
  decoder: part.nullish(),
});

const configSchema = z.looseObject({
  eos_token: z.union([z.string(), z.looseObject({ content: z.string() })]).nullish(),
});

export interface AddedToken {
  readonly id: number;
  readonly content: string;
  /** Decoding that skips special tokens leaves it out. */
  readonly isSpecial: boolean;
}

export interface TokenizerFile {
  /** For the library, with every part that it wants to be there. */
  readonly document: Readonly<Record<string, unknown>>;
  /** Ids of the merged tokens, without the added ones. */
  readonly ordinary: ReadonlyMap<string, number>;
  readonly added: readonly AddedToken[];
  /** What the folder's `tokenizer_config.json` calls the end; null = it does not say. */
  readonly endToken: string | null;
}

/** Reads a file, or a folder with `tokenizer.json` in it. CONFIG_INVALID when it cannot be used. */
export async function readTokenizerFile(path: string): Promise<TokenizerFile> {
  const file = (await isFolder(path)) ? join(path, 'tokenizer.json') : path;
  const parsed = tokenizerSchema.safeParse(await readJson(file));
  if (!parsed.success)
    throw refusal(file, `is not a tokenizer.json: ${z.prettifyError(parsed.error)}`);
  const { model, added_tokens: addedTokens, ...others } = parsed.data;
  const problem = kindProblem(parsed.data);
  if (problem !== null) throw refusal(file, problem);

  const addedContents = new Set(addedTokens.map((token) => token.content));
  const ordinary = new Map(
    Object.entries(model.vocab ?? {}).filter(([token]) => !addedContents.has(token)),
  );
  const missing = byteCharacters.filter((character) => !ordinary.has(character)).length;
  if (missing > 0) throw refusal(file, `lacks tokens for ${missing} of the 256 bytes`);
  return {
    document: {
      ...others,
      model,
      added_tokens: addedTokens,
      normalizer: others.normalizer ?? null,
      pre_tokenizer: others.pre_tokenizer ?? null,
      post_processor: others.post_processor ?? null,
      decoder: others.decoder ?? null,
    },
    ordinary,
    added: addedTokens.map(({ id, content, special }) => ({ id, content, isSpecial: special })),
    endToken: await endTokenBeside(file),
  };
}

function kindProblem(document: z.infer<typeof tokenizerSchema>): string | null {
  const { model } = document;
  if (model.type !== undefined && model.type !== 'BPE')
    return `holds a ${model.type} model, not byte-level BPE`;
  if (model.byte_fallback === true) return 'is BPE with byte fallback, not byte-level BPE';
  if (model.continuing_subword_prefix) return 'marks pieces inside words by a prefix';
  if (model.end_of_word_suffix) return 'marks ends of words by a suffix';
  const splitters = withChildren(document.pre_tokenizer, 'pretokenizers');
  const byteLevel = splitters.filter((splitter) => splitter.type === 'ByteLevel');
  if (byteLevel.length === 0) return 'is BPE over characters, not byte-level BPE';
  if (byteLevel.some((splitter) => splitter['add_prefix_space'] === true))
    return 'adds a space before every text (add_prefix_space)';
  return null;
}

type Part = z.infer<typeof part>;

function withChildren(value: Part | null | undefined, key: string): readonly Part[] {
  if (value === null || value === undefined) return [];
  const children = z.array(part).safeParse(value[key]);
  return children.success ? children.data : [value];
}

async function endTokenBeside(file: string): Promise<string | null> {
  const config = join(dirname(file), 'tokenizer_config.json');
  if ((await stat(config).catch(() => null)) === null) return null;
  const parsed = configSchema.safeParse(await readJson(config));
  const token = parsed.data?.eos_token ?? null;
  return typeof token === 'string' || token === null ? token : token.content;
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    throw refusal(path, `cannot be read: ${messageOf(error)}`, error);
  }
}

async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    throw refusal(file, `cannot be read: ${messageOf(error)}`, error);
  }
}

export function refusal(file: string, problem: string, cause?: unknown): RolloutError {
  return new RolloutError('CONFIG_INVALID', `${file} ${problem}`, {
    phase: 'config',
    field: '--tokenizer',
    remedy: 'Name a tokenizer.json that holds byte-level BPE, or leave it away for our own.',
    ...(cause === undefined ? {} : { cause }),
  });
}
