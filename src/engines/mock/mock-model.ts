/**
 * A model without weights: a policy says what it replies, a seeded sampler turns the reply into ids as models do, canonical or not, with
 * log-probabilities. It reads the conversation from the prompt's ids, so that it does not matter by which route they came. Everything is a
 * function of the seed, the prompt and how often that prompt came (never at temperature 0); a seed of the request's own takes the place of the count.
 */
import { raceSignal } from '../../core/race-signal.ts';
import type { ChatRequest, SampledToken, SampleRequest, ScoredToken, ScoreRequest, TokenModel, Vocabulary } from '../server/token-model.ts'; // prettier-ignore
import { PrefixHash, SeenCounter, seededRandom } from '../server/seeded.ts';
import { OutputText } from '../server/stop-rule.ts';
import { parseChat } from '../server/vocabulary/parse-chat.ts';
import { renderChat, renderReply } from '../server/vocabulary/render-chat.ts';
import { Ambiguity } from './ambiguity.ts';
import { mockLogprob, mockTop } from './mock-logprob.ts';
import type { Policy, PolicyReply } from './policy.ts';

export interface MockModelOptions {
  readonly name: string;
  readonly vocabulary: Vocabulary;
  readonly policy: Policy;
  readonly contextTokens: number;
  readonly seed: number;
  /** Of replies whose ids differ from what encoding their text gives, 0 to 1. */
  readonly nonCanonicalShare: number;
}

/** Of the tokens of a reply that is not canonical. */
const respeltTokens = 0.15;

export class MockModel implements TokenModel {
  readonly name: string;
  readonly contextTokens: number;
  readonly vocabulary: Vocabulary;
  readonly #options: MockModelOptions;
  readonly #ambiguity: Ambiguity;
  readonly #seen = new SeenCounter();

  constructor(options: MockModelOptions) {
    this.name = options.name;
    this.contextTokens = options.contextTokens;
    this.vocabulary = options.vocabulary;
    this.#options = options;
    this.#ambiguity = new Ambiguity(options.vocabulary);
  }

  render(request: ChatRequest): number[] {
    return renderChat(this.vocabulary, request);
  }

  async *sample(request: SampleRequest, signal: AbortSignal): AsyncIterable<SampledToken> {
    const { promptIds, sampling, topLogprobs } = request;
    const { seed } = this.#options;
    const prefix = PrefixHash.of(promptIds);
    const attempt = this.#attempt(prefix.key, sampling);
    const ids = await this.#replyIds(promptIds, seededRandom(seed, prefix.low, attempt), signal);
    const output = new OutputText(this.vocabulary, sampling);
    const count = Math.min(ids.length, sampling.maxTokens ?? Infinity);
    for (let index = 0; index < count && !signal.aborted; index += 1) {
      const id = ids[index] ?? this.vocabulary.endId;
      const logprob = mockLogprob(seed, prefix.low, id);
      const at = { prefix: prefix.low, count: topLogprobs, vocabularySize: this.vocabulary.size };
      yield { id, logprob, top: mockTop({ id, logprob }, at) };
      if (output.push(id)) return;
      prefix.push(id);
    }
  }

  score({ ids, from, topLogprobs }: ScoreRequest): Promise<readonly ScoredToken[]> {
    const prefix = new PrefixHash();
    const scored: ScoredToken[] = [];
    for (const [index, id] of ids.entries()) {
      if (index >= from) {
        const logprob = mockLogprob(this.#options.seed, prefix.low, id);
        const at = { prefix: prefix.low, count: topLogprobs, vocabularySize: this.vocabulary.size };
        scored.push(
          index === 0
            ? { id, logprob: null, top: [] }
            : { id, logprob, top: mockTop({ id, logprob }, at) },
        );
      }
      prefix.push(id);
    }
    return Promise.resolve(scored);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #attempt(key: number, { temperature, seed }: SampleRequest['sampling']): number {
    if (temperature === 0) return 0;
    return seed === undefined ? this.#seen.next(key) : seed + 0x40000000;
  }

  async #replyIds(
    promptIds: readonly number[],
    random: () => number,
    signal: AbortSignal,
  ): Promise<readonly number[]> {
    const { vocabulary } = this;
    const { name: model, policy, seed, nonCanonicalShare } = this.#options;
    const { messages, tools } = parseChat(vocabulary, promptIds);
    const turn = messages.filter(({ role }) => role === 'assistant').length;
    // A policy takes no signal: an abort leaves it to itself.
    const reply = await raceSignal(
      Promise.resolve(policy({ messages, tools, turn, model, seed, random })),
      signal,
    );
    const ids = renderReply(vocabulary, checked(reply)).slice(0, -1);
    const isRespelt = random() < nonCanonicalShare && ids.length > 0;
    const spelt = isRespelt ? this.#ambiguity.respell(ids, respeltTokens, random) : ids;
    return reply.finish === 'length' ? spelt : [...spelt, vocabulary.endId];
  }
}

/** Policies are written by others, also in plain JavaScript. */
function checked(reply: PolicyReply): Parameters<typeof renderReply>[1] {
  const given = reply as unknown;
  if (typeof given !== 'object' || given === null || typeof reply.content !== 'string')
    throw new Error('the policy gave no reply with a content');
  return {
    content: reply.content,
    reasoning: reply.reasoning ?? null,
    toolCalls: (reply.toolCalls ?? []).map(({ name, arguments: given }) => ({
      name,
      arguments: typeof given === 'string' ? given : JSON.stringify(given ?? {}),
    })),
  };
}
