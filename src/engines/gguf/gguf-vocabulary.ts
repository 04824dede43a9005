import { RolloutError } from '../../core/errors.ts';
import type { Vocabulary } from '../server/token-model.ts';
import { bytesOfToken } from '../server/vocabulary/byte-alphabet.ts';
import type { LlamaModel } from './llama-library.ts';

const controlType = 3;
const userDefinedType = 4;

/** The vocabulary inside a GGUF file. Ids are made by the model's own tokeniser, bytes come from the file's table. */
export class GgufVocabulary implements Vocabulary {
  readonly size: number;
  readonly endId: number;
  readonly #model: LlamaModel;
  readonly #tokens: readonly string[];
  readonly #types: readonly number[];

  /** CONFIG_INVALID for vocabularies that are not byte-level BPE, or that have no end. */
  constructor(model: LlamaModel, file: string) {
    const table = model.fileInfo.metadata.tokenizer?.ggml;
    const refuse = (problem: string): RolloutError =>
      new RolloutError('CONFIG_INVALID', `${file} ${problem}`, {
        phase: 'config',
        field: '--gguf',
        remedy: 'Name a GGUF file of a model with byte-level BPE, such as Qwen, Llama 3 or SmolLM.',
      });
    if (table?.model !== 'gpt2')
      throw refuse(`has a vocabulary of kind ${table?.model ?? 'none'}, not byte-level BPE (gpt2)`);
    this.#model = model;
    this.#tokens = table.tokens ?? [];
    this.#types = table.token_type ?? [];
    this.size = this.#tokens.length;
    // A chat's turn ends with this token also where the file names another one as the end of all text.
    const turnEnd = this.#tokens.indexOf('<|im_end|>');
    const end = turnEnd === -1 ? table.eos_token_id : turnEnd;
    if (end === undefined) throw refuse('names no token that ends a text');
    this.endId = end;
  }

  encode(text: string, options: { readonly parsesSpecial: boolean }): number[] {
    return this.#model.tokenize(text.toWellFormed(), options.parsesSpecial);
  }

  bytesOf(id: number): Uint8Array {
    const token = this.#tokens[id];
    if (token === undefined)
      throw new RolloutError('ENGINE_REQUEST_INVALID', `the vocabulary has no token ${id}`, {
        phase: 'model-call',
      });
    const type = this.#types[id];
    const isLiteral = type === controlType || type === userDefinedType;
    return (isLiteral ? null : bytesOfToken(token)) ?? Buffer.from(token, 'utf8');
  }

  isSpecial(id: number): boolean {
    return this.#types[id] === controlType;
  }

  isEnd(id: number): boolean {
    return id === this.endId || this.#model.isEogToken(id);
  }

  nameOf(id: number | undefined): string {
    return id === undefined ? '' : (this.#tokens[id] ?? '');
  }

  decode(ids: readonly number[], options: { readonly skipsSpecial: boolean }): string {
    const kept = options.skipsSpecial ? ids.filter((id) => !this.isSpecial(id)) : ids;
    return utf8.decode(Buffer.concat(kept.map((id) => this.bytesOf(id))));
  }
}

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
