/** `slipway engine`: compiles its options, builds the model and starts the server. */
import { Problems } from '../config/problems.ts';
import { isRolloutError } from '../core/errors.ts';
import { openGgufModel } from '../engines/gguf/gguf-model.ts';
import { loadPolicy } from '../engines/mock/policy.ts';
import { MockModel } from '../engines/mock/mock-model.ts';
import { dialects, type Dialect } from '../engines/server/engine-parts.ts';
import {
  startEngineServer,
  type EngineServer,
  type EngineServerOptions,
} from '../engines/server/engine-server.ts';
import { readFaults } from '../engines/server/fault-script.ts';
import { noLatency, parseLatency, type LatencyLaw } from '../engines/server/latency.ts';
import type { TokenModel } from '../engines/server/token-model.ts';
import { loadVocabulary } from '../engines/server/vocabulary/load-vocabulary.ts';

/** As given on the command line; absent = the default. */
export interface EngineFlags {
  readonly host?: string;
  readonly port?: string;
  readonly model?: string;
  readonly tokenizer?: string;
  /** A built-in policy or a module. */
  readonly policy?: string;
  readonly seed?: string;
  readonly nonCanonical?: string;
  readonly latency?: string;
  readonly tokenLatency?: string;
  /** A file, or the rules themselves. */
  readonly faults?: string;
  readonly log?: string;
  readonly kvTokens?: string;
  readonly context?: string;
  readonly maxRunning?: string;
  /** Name of the variable that holds the key. */
  readonly apiKeyEnv?: string;
  readonly dialect?: string;
  readonly routerWorkers?: string;
  readonly gguf?: string;
}

const defaultContextTokens = 131_072;

/** CONFIG_INVALID names every flag that is wrong. */
export async function serveEngine(
  flags: EngineFlags,
  variables: Readonly<Record<string, string | undefined>>,
): Promise<EngineServer> {
  const compiled = compile(flags, variables);
  const faults = flags.faults === undefined ? [] : await readFaults(flags.faults);
  const model = await openModel(flags, compiled);
  try {
    return await startEngineServer({ ...compiled.server, faults, model });
  } catch (error) {
    await model.close();
    throw error;
  }
}

interface Compiled {
  readonly server: Omit<EngineServerOptions, 'model' | 'faults'>;
  readonly seed: number;
  readonly nonCanonicalShare: number;
  readonly contextTokens: number | null;
}

function compile(
  flags: EngineFlags,
  variables: Readonly<Record<string, string | undefined>>,
): Compiled {
  const problems = new Problems();
  const whole = (text: string | undefined, field: string, least: number): number | null => {
    if (text === undefined) return null;
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (Number.isSafeInteger(value) && value >= least) return value;
    problems.add(field, `“${text}” is not a whole number of at least ${least}`, 'Give one.');
    return null;
  };
  const port = whole(flags.port, '--port', 0) ?? 0;
  if (port > 65_535) problems.add('--port', `there is no port ${port}`, 'Give 0 to 65535.');
  const share = flags.nonCanonical === undefined ? 0 : Number(flags.nonCanonical || Number.NaN);
  if (!(share >= 0 && share <= 1))
    problems.add('--non-canonical', 'a share of replies is 0 to 1', 'Give for example 0.2.');
  const dialect = (flags.dialect ?? 'both') as Dialect;
  if (!dialects.includes(dialect))
    problems.add('--dialect', `no dialect is called ${dialect}`, `Use: ${dialects.join(', ')}.`);
  const apiKey = flags.apiKeyEnv === undefined ? null : (variables[flags.apiKeyEnv] ?? '');
  if (apiKey === '')
    problems.add('--api-key-env', `${flags.apiKeyEnv} is not set`, 'Set it to the key.');
  if (flags.gguf !== undefined)
    for (const name of ['tokenizer', 'policy', 'nonCanonical'] as const)
      if (flags[name] !== undefined)
        problems.add(
          name === 'nonCanonical' ? '--non-canonical' : `--${name}`,
          'real weights sample by themselves, over their own vocabulary',
          'Leave it away with --gguf.',
        );
  const kvTokens = whole(flags.kvTokens, '--kv-tokens', 1);
  const maxRunning = whole(flags.maxRunning, '--max-running', 1);
  const contextTokens = whole(flags.context, '--context', 2);
  const law = (text: string | undefined, field: string): LatencyLaw => {
    if (text === undefined) return noLatency;
    try {
      return parseLatency(text, field);
    } catch (error) {
      if (!isRolloutError(error)) throw error;
      problems.add(field, error.message, error.remedy ?? '');
      return noLatency;
    }
  };
  const latency = law(flags.latency, '--latency');
  const tokenLatency = law(flags.tokenLatency, '--token-latency');
  const routerWorkers = flags.routerWorkers
    ?.split(',')
    .map((url) => url.trim().replace(/\/+$/, ''));
  for (const url of routerWorkers ?? [])
    if (!/^https?:\/\/./.test(url))
      problems.add('--router-workers', `“${url}” is not an http(s) URL`, 'Give URLs, with commas.');
  const seed = whole(flags.seed, '--seed', 0) ?? 0;
  problems.throwIfAny();
  return {
    seed,
    nonCanonicalShare: share,
    contextTokens,
    server: {
      ...(flags.host !== undefined && { host: flags.host }),
      ...(kvTokens !== null && { kvTokens }),
      ...(maxRunning !== null && { maxRunning }),
      ...(flags.log !== undefined && { logFile: flags.log }),
      port,
      apiKey,
      dialect,
      seed,
      contextTokens,
      latency,
      tokenLatency,
      routerWorkers: routerWorkers ?? null,
    },
  };
}

async function openModel(flags: EngineFlags, compiled: Compiled): Promise<TokenModel> {
  const { seed, nonCanonicalShare, contextTokens } = compiled;
  if (flags.gguf !== undefined)
    return await openGgufModel({
      file: flags.gguf,
      name: flags.model ?? null,
      contextTokens,
      seed,
    });
  return new MockModel({
    name: flags.model ?? 'mock',
    vocabulary: await loadVocabulary(flags.tokenizer ?? null),
    policy: await loadPolicy(flags.policy ?? 'echo'),
    contextTokens: contextTokens ?? defaultContextTokens,
    seed,
    nonCanonicalShare,
  });
}
