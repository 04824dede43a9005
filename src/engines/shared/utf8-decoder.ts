import { TextDecoder } from 'node:util';
import { engineError, type AnswerOrigin } from './answer-error.ts';

/** ENGINE_RESPONSE_INVALID for bytes that are not UTF-8: replaced, they would be characters that nobody sampled. */
export class Utf8Decoder {
  readonly #decoder = new TextDecoder('utf-8', { fatal: true });
  readonly #at: AnswerOrigin;

  constructor(at: AnswerOrigin) {
    this.#at = at;
  }

  /** What is complete so far. */
  decode(bytes: Uint8Array): string {
    return this.#run(() => this.#decoder.decode(bytes, { stream: true }));
  }

  end(): string {
    return this.#run(() => this.#decoder.decode());
  }

  #run(decode: () => string): string {
    try {
      return decode();
    } catch (error) {
      const at = { ...this.#at, cause: error };
      throw engineError('ENGINE_RESPONSE_INVALID', 'the answer is not UTF-8', at);
    }
  }
}
