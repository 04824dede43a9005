/**
 * Real weights from a GGUF file, on the CPU with one thread: for proofs and small experiments, not for speed. One request at a time has the model;
 * the others wait in order. What of the last text begins the next one is not evaluated again.
 *
 * The `logprob` of a sampled token, of its alternatives and of a scored token are one and the same thing: see `distribution.ts`. They come as
 * float32 from the library.
 */
import { basename } from 'node:path';
import { attribute, messageOf, RolloutError } from '../../core/errors.ts';
import { Limiter } from '../../core/limiter.ts';
import type {
  ChatRequest,
  SampledToken,
  SampleRequest,
  ScoredToken,
  ScoreRequest,
  TokenModel,
} from '../server/token-model.ts';
import { PrefixHash, seededRandom, SeenCounter } from '../server/seeded.ts';
import { OutputText } from '../server/stop-rule.ts';
import { chatRenderer, type ChatRenderer } from './chat-template.ts';
import { draw } from './distribution.ts';
import { Evaluator, pieceLength } from './evaluator.ts';
import { checkGgufHead } from './gguf-file.ts';
import { GgufVocabulary } from './gguf-vocabulary.ts';
import { importLlama, type Llama, type LlamaModel } from './llama-library.ts';
import { takeTurn } from './take-turn.ts';

/** Enough for a few turns of an agent, and small enough for any machine. */
const defaultContextTokens = 8192;

const threads = 1;

/** For large files on slow disks; a damaged one ends here. */
const loadMs = 600_000;

export interface GgufOptions {
  readonly file: string;
  /** null = the file's name without its ending. */
  readonly name: string | null;
  /** Prompt and output together; null = what the model was trained for, at most 8,192. */
  readonly contextTokens: number | null;
  /** For requests that bring no seed of their own. */
  readonly seed: number;
}

interface GgufParts {
  readonly name: string;
  readonly contextTokens: number;
  readonly vocabulary: GgufVocabulary;
  readonly seed: number;
  readonly model: LlamaModel;
  readonly evaluator: Evaluator;
  readonly renderer: ChatRenderer;
  /** Frees everything. */
  readonly dispose: () => Promise<void>;
}

/** CONFIG_INVALID when `node-llama-cpp` is not installed, and for files that cannot be used. */
export async function openGgufModel(options: GgufOptions): Promise<TokenModel> {
  const { file } = options;
  const libraries = await importLlama();
  await opened(file, () => checkGgufHead(file));
  const llama = await opened(file, () =>
    libraries.llama.getLlama({
      gpu: false,
      build: 'never',
      skipDownload: true,
      progressLogs: false,
      logLevel: 'error',
      maxThreads: threads,
    }),
  );
  try {
    return await openModel(llama, options, libraries.jinja);
  } catch (error) {
    await llama.dispose();
    throw error;
  }
}

async function openModel(
  llama: Llama,
  { file, name, contextTokens, seed }: GgufOptions,
  jinja: Parameters<typeof chatRenderer>[2],
): Promise<TokenModel> {
  const model = await opened(file, () =>
    llama.loadModel({ modelPath: file, loadSignal: AbortSignal.timeout(loadMs) }),
  );
  const vocabulary = new GgufVocabulary(model, file);
  const contextSize = contextTokens ?? Math.min(model.trainContextSize, defaultContextTokens);
  // The library rounds sizes up; room for one more piece keeps its own shifting of full contexts from ever happening.
  const context = await opened(file, () =>
    model.createContext({
      contextSize: contextSize + pieceLength,
      batchSize: pieceLength + 1,
      sequences: 1,
      threads,
      flashAttention: false,
    }),
  );
  return new GgufModel({
    name: name ?? basename(file, '.gguf'),
    contextTokens: contextSize,
    vocabulary,
    seed,
    model,
    evaluator: new Evaluator(context.getSequence()),
    renderer: chatRenderer(model.fileInfo.metadata, vocabulary, jinja),
    dispose: async () => {
      await context.dispose();
      await model.dispose();
      await llama.dispose();
    },
  });
}

async function opened<T>(file: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new RolloutError('CONFIG_INVALID', `${file} cannot be opened: ${messageOf(error)}`, {
      phase: 'config',
      field: '--gguf',
      remedy: 'Name a GGUF file of a language model that llama.cpp can load.',
      cause: error,
    });
  }
}

class GgufModel implements TokenModel {
  readonly name: string;
  readonly contextTokens: number;
  readonly vocabulary: GgufVocabulary;
  readonly #parts: GgufParts;
  readonly #turns = new Limiter(1);
  readonly #asked = new SeenCounter();
  #closing: Promise<void> | null = null;

  constructor(parts: GgufParts) {
    this.name = parts.name;
    this.contextTokens = parts.contextTokens;
    this.vocabulary = parts.vocabulary;
    this.#parts = parts;
  }

  render(request: ChatRequest): number[] {
    return this.#parts.renderer(request);
  }

  async *sample(
    { promptIds, sampling, topLogprobs }: SampleRequest,
    signal: AbortSignal,
  ): AsyncGenerator<SampledToken, void, undefined> {
    const leave = await takeTurn(this.#turns, signal);
    try {
      yield* this.#sampled({ promptIds, sampling, topLogprobs }, signal);
    } finally {
      leave();
    }
  }

  async *#sampled(
    { promptIds, sampling, topLogprobs }: Omit<SampleRequest, 'requestId'>,
    signal: AbortSignal,
  ): AsyncGenerator<SampledToken, void, undefined> {
    const { evaluator } = this.#parts;
    const output = new OutputText(this.vocabulary, sampling);
    const random = this.#randomFor(promptIds, sampling.seed);
    const ids = [...promptIds];
    const room = this.contextTokens - ids.length;
    const limit = Math.min(sampling.maxTokens ?? room, room);
    while (ids.length - promptIds.length < limit) {
      const distribution = await evaluated(() => evaluator.next(ids, signal), signal);
      const sampled = ids.slice(promptIds.length);
      const id = draw(distribution, { sampling, sampled, random });
      yield { id, logprob: distribution.logprobOf(id), top: distribution.top(topLogprobs) };
      if (output.push(id)) return;
      ids.push(id);
    }
  }

  async score(
    { ids, from, topLogprobs }: ScoreRequest,
    signal: AbortSignal,
  ): Promise<readonly ScoredToken[]> {
    const [first] = ids;
    const scored: ScoredToken[] =
      from === 0 && first !== undefined ? [{ id: first, logprob: null, top: [] }] : [];
    const wanted = ids.slice(Math.max(from, 1));
    if (wanted.length === 0) return scored;
    const behind = ids.length - wanted.length - 1;
    await this.#turns.run(signal, () =>
      evaluated(async () => {
        const { evaluator } = this.#parts;
        let index = 0;
        for await (const known of evaluator.distributions(ids.slice(0, -1), behind, signal)) {
          const id = wanted[index++] ?? 0;
          scored.push({ id, logprob: known.logprobOf(id), top: known.top(topLogprobs) });
        }
      }, signal),
    );
    return scored;
  }

  /** Waits for the request that has the model, which the caller ends. */
  close(): Promise<void> {
    this.#closing ??= this.#turns.run(new AbortController().signal, this.#parts.dispose);
    return this.#closing;
  }

  /** The same prompt asked again gets other numbers, the same run the same ones. A request's own seed always gives the same. */
  #randomFor(promptIds: readonly number[], seed: number | undefined): () => number {
    const prompt = PrefixHash.of(promptIds);
    if (seed !== undefined) return seededRandom(seed, prompt.low);
    return seededRandom(this.#parts.seed, prompt.low, this.#asked.next(prompt.key));
  }
}

async function evaluated<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw attribute(error, 'ENGINE_UNAVAILABLE', 'model-call', 'the model could not be evaluated');
  }
}
