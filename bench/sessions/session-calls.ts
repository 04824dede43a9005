/** Calls of a session that only goes on: half of each turn's tokens are new prompt, half are sampled. Log-probabilities are 32-bit floats, as engines compute them. */
import type { ForestCall } from '../../src/sessions/forest-call.ts';

export class SessionCalls {
  readonly messages: { readonly role: string; readonly content: string }[] = [];
  #state: number;
  #calls = 0;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** Its prompt ids are those behind the turn before. */
  next(prompt: { readonly text: string; readonly ids: Int32Array }, sampled: number): ForestCall {
    this.#calls += 1;
    this.messages.push({ role: this.#calls === 1 ? 'user' : 'tool', content: prompt.text });
    const logprobs = Float32Array.from({ length: sampled }, () => -this.#below(1 << 20) / 65_536);
    const text = `answer ${this.#calls}`;
    const call: ForestCall = {
      ...{ call: this.#calls, purpose: 'turn', client: null, repeats: null, time: null },
      ...{ promptIds: prompt.ids, outputIds: this.ids(sampled), logprobs },
      ...{ weightVersion: '1', status: 'completed', cachedTokens: null },
      ...{ messages: [...this.messages], answer: { text, toolArguments: [] } },
    };
    this.messages.push({ role: 'assistant', content: text });
    return call;
  }

  ids(count: number): Int32Array {
    return Int32Array.from({ length: count }, () => this.#below(150_000));
  }

  #below(bound: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return this.#state % bound;
  }
}
