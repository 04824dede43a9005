/** The configuration of `slipway collect`: one TOML file. Everything that is wrong is reported at once, with its place. */
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { RolloutError } from '../../core/errors.ts';
import { collectionDriver } from '../../wire/api/collection.ts';
import { readDocument } from '../document.ts';
import type { Machine } from '../machine.ts';

const word = z.string().trim().min(1);
const url = word.regex(/^https?:\/\/\S+$/, 'an http(s) address is needed');
const count = z.int().min(1);
const seconds = z.number().min(0);
const keyed = { url, api_key_env: word.nullable().default(null) };

const schema = z.strictObject({
  /** How many batches; null = until the dataset ends. */
  batches: count.nullable().default(null),
  /** Where it goes on after a restart; null = nowhere, it begins anew. */
  position: word.nullable().default(null),
  dataset: z.strictObject({
    file: word,
    prompt: word.default('prompt'),
    label: word.default('label'),
    metadata: word.default('metadata'),
    shuffle_seed: z.int().nullable().default(null),
    /** null = without end. */
    epochs: count.nullable().default(1),
  }),
  server: z.strictObject(keyed),
  /** What the agents' calls go to; without it they have no model. */
  model: z.strictObject(keyed).nullable().default(null),
  /** What is aborted when a batch is full. */
  engines: z
    .strictObject({
      router_url: url.nullable().default(null),
      urls: z.array(url).default([]),
      kind: z.enum(['sglang', 'vllm']).default('sglang'),
      api_key_env: word.nullable().default(null),
    })
    .nullable()
    .default(null),
  rollouts: z
    .strictObject({
      train: z.union([z.boolean(), z.record(z.string(), z.unknown())]).default(true),
      graded: z.boolean().default(true),
      agent_timeout_sec: seconds.nullable().default(null),
      grader_timeout_sec: seconds.nullable().default(null),
    })
    .prefault({}),
  /** Functions of modules, as `path/file.js:name`. */
  hooks: z
    .strictObject({
      member_reward: word.nullable().default(null),
      group_reward: word.nullable().default(null),
      /** Or `reward_spread`: groups whose rewards are all equal are dropped. */
      group_filter: word.nullable().default(null),
      sample_filter: word.nullable().default(null),
    })
    .prefault({}),
  /** For members that nobody graded; `docs/rewards.md` lists the types. */
  rewards: z
    .strictObject({
      /** null = each row names its own, as `metadata.rm_type`. */
      type: word.nullable().default(null),
      /** `tokenizer.json` of the model, or its folder; null = the vocabulary of `slipway engine`. */
      tokenizer: word.nullable().default(null),
      /** Field of a reward that is an object. */
      key: word.default('score'),
      /** Of the reward model, for the type `remote_rm`. */
      url: url.nullable().default(null),
      timeout_sec: seconds.default(60),
      attempts: count.default(3),
    })
    .nullable()
    .default(null),
  /** When groups are started, and when a batch is full. */
  driver: collectionDriver.default('synchronous'),
  /** Options of the asynchronous driver, in snake_case. Without a trainer that names its versions there is no limit to staleness. */
  asynchronous: z.strictObject({ buffer_groups: count.optional() }).default({}),
  /** Where the server's callbacks come in, under a key that is made for the run. */
  listen: z
    .strictObject({
      host: word.default('127.0.0.1'),
      /** 0 = any. */
      port: z.int().min(0).max(65_535).default(0),
      /** How the server reaches it; null = at host and port. */
      public_url: url.nullable().default(null),
    })
    .refine(
      ({ host, public_url }) => public_url !== null || !['0.0.0.0', '::'].includes(host),
      'public_url has to say how the server reaches this machine',
    )
    .prefault({}),
  /** Options of the collector, in snake_case; `docs/collecting.md` has them. */
  collector: z.record(z.string(), z.unknown()).default({}),
});

export type CollectConfig = Readonly<z.output<typeof schema>> & {
  /** Absolute; what relative paths begin at. */
  readonly baseDir: string;
};

/** What the command line says instead. */
export interface CollectOverrides {
  /** NaN = it was no number. */
  readonly batches?: number;
}

/** CONFIG_INVALID lists everything that is wrong. */
export async function readCollectConfig(
  file: string,
  { batches }: CollectOverrides,
  machine: Machine,
): Promise<CollectConfig> {
  const place = resolve(machine.cwd, file);
  const document = await readDocument(place, 'CONFIG');
  return compileCollectConfig(
    { ...document, ...(batches !== undefined && { batches }) },
    dirname(place),
  );
}

export function compileCollectConfig(document: unknown, baseDir: string): CollectConfig {
  const parsed = schema.safeParse(document);
  if (parsed.success) return Object.freeze({ ...parsed.data, baseDir });
  const [first] = parsed.error.issues;
  throw new RolloutError('CONFIG_INVALID', z.prettifyError(parsed.error), {
    phase: 'config',
    field: first?.path.join('.') ?? 'CONFIG',
    remedy: 'Correct the file; docs/collecting.md lists its keys.',
  });
}

/** The value of a key's variable. CONFIG_INVALID for one that is named and not set. */
export function keyOf(
  section: { readonly api_key_env: string | null } | null,
  { name, variables }: { readonly name: string; readonly variables: Machine['variables'] },
): string | null {
  const variable = section?.api_key_env ?? null;
  if (variable === null) return null;
  const value = variables[variable]?.trim() ?? '';
  if (value !== '') return value;
  throw new RolloutError('CONFIG_INVALID', `${variable} is not set`, {
    ...{ phase: 'config', field: `${name}.api_key_env` },
    remedy: 'Set the variable, or leave the key away.',
  });
}
