/**
 * What we use of `node-llama-cpp`, an optional peer dependency: it is loaded when a model is opened, and its members are declared here so that
 * nothing else of Slipway needs it.
 */
import { createRequire } from 'node:module';
import { messageOf, RolloutError } from '../../core/errors.ts';

export const llamaVersion = '3.21.1';

export interface LlamaLibrary {
  getLlama(options: {
    readonly gpu: false;
    readonly build: 'never';
    readonly skipDownload: true;
    readonly progressLogs: false;
    readonly logLevel: 'error';
    readonly maxThreads: number;
  }): Promise<Llama>;
}

export interface Llama {
  loadModel(options: {
    readonly modelPath: string;
    readonly loadSignal: AbortSignal;
  }): Promise<LlamaModel>;
  dispose(): Promise<void>;
}

export interface LlamaModel {
  readonly trainContextSize: number;
  readonly fileInfo: { readonly metadata: GgufMetadata };
  /** Nothing is added before or behind. */
  tokenize(text: string, specialTokens: boolean): number[];
  isEogToken(id: number): boolean;
  createContext(options: {
    readonly contextSize: number;
    readonly batchSize: number;
    readonly sequences: 1;
    readonly threads: number;
    readonly flashAttention: false;
  }): Promise<LlamaContext>;
  dispose(): Promise<void>;
}

export interface GgufMetadata {
  readonly tokenizer?: {
    readonly chat_template?: string;
    readonly ggml?: {
      readonly model?: string;
      readonly tokens?: readonly string[];
      /** 3 = control token, 4 = written by the user as it stands. */
      readonly token_type?: readonly number[];
      readonly bos_token_id?: number;
      readonly eos_token_id?: number;
    };
  };
}

export interface LlamaContext {
  readonly contextSize: number;
  getSequence(): LlamaSequence;
  dispose(): Promise<void>;
}

/** Asks for the whole distribution behind a token; greedy, so that no sampler of the library cuts it. */
export interface DistributionRequest {
  readonly generateNext: {
    readonly probabilities: true;
    readonly options: { readonly temperature: 0 };
  };
}

export interface LlamaSequence {
  /** How many tokens have been evaluated. */
  readonly nextTokenIndex: number;
  compareContextTokens(ids: readonly number[]): { readonly firstDifferentIndex: number };
  eraseContextTokenRanges(
    ranges: readonly { readonly start: number; readonly end: number }[],
  ): Promise<void>;
  /** Probabilities come best first. */
  controlledEvaluate(
    input: readonly (number | readonly [number, DistributionRequest])[],
  ): Promise<
    readonly (
      { readonly next: { readonly probabilities?: ReadonlyMap<number, number> } } | undefined
    )[]
  >;
}

/** `@huggingface/jinja`, which `node-llama-cpp` brings along. */
export interface JinjaLibrary {
  readonly Template: new (source: string) => {
    render(values: Readonly<Record<string, unknown>>): string;
  };
}

const packageName = 'node-llama-cpp';

/** CONFIG_INVALID when the package is not installed. */
export async function importLlama(): Promise<{ llama: LlamaLibrary; jinja: JinjaLibrary }> {
  try {
    const llama = (await import(packageName)) as LlamaLibrary;
    const requireBeside = createRequire(import.meta.resolve(packageName));
    return { llama, jinja: requireBeside('@huggingface/jinja') as JinjaLibrary };
  } catch (error) {
    throw new RolloutError(
      'CONFIG_INVALID',
      `GGUF files need the package ${packageName}: ${messageOf(error)}`,
      { phase: 'config', field: '--gguf', remedy: `Run: ${installCommand()}`, cause: error },
    );
  }
}

/** Without the optional packages of other machines and GPUs, which are large, and without its build script. */
export function installCommand(): string {
  const [platform, arch] = [process.platform, process.arch];
  const binaries =
    platform === 'darwin' && arch === 'arm64'
      ? 'mac-arm64-metal'
      : `${{ darwin: 'mac', win32: 'win' }[platform as string] ?? platform}-${arch}`;
  const names = [packageName, `@${packageName}/${binaries}`];
  const pinned = names.map((name) => `${name}@${llamaVersion}`).join(' ');
  return `npm install --save-exact --omit=optional --ignore-scripts ${pinned}`;
}
