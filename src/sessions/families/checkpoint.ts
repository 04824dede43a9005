/** What a family needs of a checkpoint's folder: its vocabulary, its chat template, and the Python file that some families have instead of one. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { messageOf, RolloutError } from '../../core/errors.ts';
import { openTokenizer } from '../../engines/server/vocabulary/bpe-library.ts';
import { ByteLevelVocabulary } from '../../engines/server/vocabulary/byte-level-vocabulary.ts';
import { readTokenizerFile } from '../../engines/server/vocabulary/tokenizer-file.ts';

export interface Checkpoint {
  readonly dir: string;
  readonly vocabulary: ByteLevelVocabulary;
  /** Ids of the added tokens by their text. */
  readonly tokens: ReadonlyMap<string, number>;
  /** Source of the chat template; null = the folder has none. */
  readonly template: string | null;
  /** Special tokens that templates name, such as `bos_token`. */
  readonly templateTokens: Readonly<Record<string, string>>;
}

export interface CheckpointOptions {
  readonly dir: string;
  /** A template in place of the folder's own. */
  readonly templateFile: string | null;
}

const configSchema = z.looseObject({
  chat_template: z
    .union([z.string(), z.array(z.object({ name: z.string(), template: z.string() }))])
    .nullish(),
});
const namedTokens = ['bos_token', 'eos_token', 'pad_token', 'unk_token'] as const;
const tokenSchema = z.union([z.string(), z.looseObject({ content: z.string() })]);

/** CONFIG_INVALID for a folder that cannot be used. */
export async function readCheckpoint(options: CheckpointOptions): Promise<Checkpoint> {
  const { dir } = options;
  const file = await readTokenizerFile(dir);
  const { ordinary, added } = file;
  const tokens = new Map(added.map(({ content, id }) => [content, id]));
  const config = await readConfig(join(dir, 'tokenizer_config.json'));
  try {
    return {
      dir,
      vocabulary: new ByteLevelVocabulary({
        tokenizer: openTokenizer(file.document),
        ordinary,
        added,
        // Which ids end a turn is the family's to say.
        endId: -1,
      }),
      tokens,
      template: await templateOf(options, config),
      templateTokens: tokensOf(config),
    };
  } catch (error) {
    if (error instanceof RolloutError) throw error;
    throw checkpointError(`${dir} has no tokenizer that can be used: ${messageOf(error)}`, error);
  }
}

/** The first of these files that is there; null = none is. */
export async function readOptional(dir: string, names: readonly string[]): Promise<string | null> {
  for (const name of names) {
    try {
      return await readFile(join(dir, name), 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
        throw checkpointError(`${join(dir, name)} cannot be read: ${messageOf(error)}`, error);
    }
  }
  return null;
}

export function checkpointError(problem: string, cause?: unknown): RolloutError {
  return new RolloutError('CONFIG_INVALID', problem, {
    phase: 'config',
    field: '--tokenizer',
    remedy: 'Name the folder of a checkpoint of this family.',
    ...(cause === undefined ? {} : { cause }),
  });
}

type Config = z.infer<typeof configSchema>;

async function readConfig(file: string): Promise<Config> {
  const source = await readOptional('', [file]);
  try {
    return configSchema.parse(JSON.parse(source ?? '{}'));
  } catch (error) {
    throw checkpointError(`${file} is not valid: ${messageOf(error)}`, error);
  }
}

async function templateOf(options: CheckpointOptions, config: Config): Promise<string | null> {
  const { dir, templateFile } = options;
  if (templateFile !== null) {
    const named = await readOptional('', [templateFile]);
    if (named === null) throw checkpointError(`${templateFile} is not there`);
    return named;
  }
  // The newer place is the one that engines look at first.
  const file = await readOptional(dir, ['chat_template.jinja']);
  if (file !== null) return file;
  const inside = config.chat_template ?? null;
  if (inside === null || typeof inside === 'string') return inside;
  return (inside.find(({ name }) => name === 'default') ?? inside[0])?.template ?? null;
}

function tokensOf(config: Config): Readonly<Record<string, string>> {
  const tokens: Record<string, string> = {};
  for (const name of namedTokens) {
    const parsed = tokenSchema.safeParse(config[name]);
    if (parsed.success)
      tokens[name] = typeof parsed.data === 'string' ? parsed.data : parsed.data.content;
  }
  return tokens;
}
