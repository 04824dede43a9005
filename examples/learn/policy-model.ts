/** The policy as a model that `EngineServer` can serve: it reads the conversation from the prompt's ids and samples ids with their exact log-probabilities. */
import type {
  ChatRequest,
  SampledToken,
  SampleRequest,
  ScoredToken,
  ScoreRequest,
  TokenModel,
  Vocabulary,
} from '../../src/engines/server/token-model.ts';
import { PrefixHash, SeenCounter, seededRandom } from '../../src/engines/server/seeded.ts';
import { parseChat } from '../../src/engines/server/vocabulary/parse-chat.ts';
import { renderChat } from '../../src/engines/server/vocabulary/render-chat.ts';
import { exerciseOf, letters, words } from './exercises.ts';
import { LetterPolicy, type PolicyState } from './letter-policy.ts';

/** A letter, a second one if the policy errs, and the end. */
const positions = 3;

/** An untrained policy for these exercises. */
export function newPolicy(): LetterPolicy {
  return new LetterPolicy({ exercises: words.length, positions, actions: letters.length + 1 });
}

/** Which id is which action, and which state a prefix of ids is in. */
export class PolicyCodec {
  readonly vocabulary: Vocabulary;
  readonly actionIds: readonly number[];

  constructor(vocabulary: Vocabulary) {
    this.vocabulary = vocabulary;
    this.actionIds = [
      ...letters.flatMap((letter) => vocabulary.encode(letter, { parsesSpecial: false })),
      vocabulary.endId,
    ];
    if (this.actionIds.length !== letters.length + 1)
      throw new Error('the vocabulary has no id for each letter');
  }

  /** null = none of these exercises is asked there. */
  stateAfter(prefix: readonly number[]): PolicyState | null {
    const { messages, begun } = parseChat(this.vocabulary, prefix);
    const asked = messages.findLast(({ role }) => role === 'user')?.content;
    const exercise = typeof asked === 'string' ? exerciseOf(asked) : -1;
    return exercise < 0 ? null : { exercise, position: begun.length };
  }
}

export class PolicyModel implements TokenModel {
  readonly name = 'letters';
  readonly contextTokens = 4_096;
  readonly vocabulary: Vocabulary;
  readonly #codec: PolicyCodec;
  readonly #seed: number;
  readonly #seen = new SeenCounter();
  /** Replaced between `/pause_generation` and `/continue_generation`. */
  policy: LetterPolicy;

  constructor(codec: PolicyCodec, policy: LetterPolicy, seed: number) {
    this.vocabulary = codec.vocabulary;
    this.#codec = codec;
    this.#seed = seed;
    this.policy = policy;
  }

  render(request: ChatRequest): number[] {
    return renderChat(this.vocabulary, request);
  }

  async *sample(request: SampleRequest, signal: AbortSignal): AsyncIterable<SampledToken> {
    const { promptIds, sampling } = request;
    const prefix = PrefixHash.of(promptIds);
    const attempt = sampling.seed ?? this.#seen.next(prefix.key);
    const random = seededRandom(this.#seed, prefix.low, attempt);
    const ids = [...promptIds];
    const count = Math.min(positions, sampling.maxTokens ?? positions);
    for (let index = 0; index < count && !signal.aborted; index += 1) {
      const { id, logprob } = this.#draw(ids, random());
      // The signal is looked at between tokens.
      await Promise.resolve();
      yield { id, logprob, top: [] };
      if (id === this.vocabulary.endId) return;
      ids.push(id);
    }
  }

  score({ ids, from }: ScoreRequest): Promise<readonly ScoredToken[]> {
    const scored = ids.slice(from).map((id, index): ScoredToken => {
      const logprob = from + index === 0 ? null : this.#logprobOf(ids.slice(0, from + index), id);
      return { id, logprob, top: [] };
    });
    return Promise.resolve(scored);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #draw(prefix: readonly number[], at: number): { id: number; logprob: number } {
    const logprobs = this.#logprobs(prefix);
    let left = at;
    let action = logprobs.length - 1;
    for (const [index, logprob] of logprobs.entries()) {
      left -= Math.exp(logprob);
      if (left >= 0) continue;
      action = index;
      break;
    }
    const id = this.#codec.actionIds[action] ?? this.vocabulary.endId;
    return { id, logprob: logprobs[action] ?? 0 };
  }

  #logprobOf(prefix: readonly number[], id: number): number {
    const action = this.#codec.actionIds.indexOf(id);
    return this.#logprobs(prefix)[action] ?? unlikely;
  }

  /** To a question of anything else it ends its reply. */
  #logprobs(prefix: readonly number[]): readonly number[] {
    const state = this.#codec.stateAfter(prefix);
    if (state !== null) return this.policy.logprobs(state);
    return this.#codec.actionIds.map((id) => (id === this.vocabulary.endId ? 0 : unlikely));
  }
}

/** Of an id that is no action: JSON has no minus infinity. */
const unlikely = -1e9;
