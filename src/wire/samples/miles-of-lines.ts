/**
 * The payload that clients of Miles take, made of the lines of a file of samples. What a sample says in words is in no line, so that `response` is empty; the ids
 * are all that a trainer needs.
 */
import { milesContainer, type MilesSample } from './miles-container.ts';
import {
  sampleLineSchema,
  samplesHeadSchema,
  type SampleLine,
  type SamplesHead,
} from './sample-lines.ts';

export class MilesOfLines {
  #head: SamplesHead | null = null;
  readonly #samples: MilesSample[] = [];

  /** In their order. Throws for one that is none of such a file. */
  line(text: string): void {
    const document: unknown = JSON.parse(text);
    if (this.#head === null) this.#head = samplesHeadSchema.parse(document);
    else if (!isEnd(document))
      this.#samples.push(milesSample(sampleLineSchema.parse(document), this.#head));
  }

  /** `empty_reason` is that of a session of which nobody asked anything. */
  payload(): Buffer {
    const { rollout_id, link = null, calls_without_ids } = this.#head ?? {};
    return milesContainer({
      samples: this.#samples,
      sessionMetadata: { rollout_id, link, calls_without_ids },
      emptyReason: this.#samples.length === 0 ? 'no_records' : null,
    });
  }
}

function milesSample(line: SampleLine, head: SamplesHead): MilesSample {
  const { tokens, prompt_length: promptLength, loss_mask: mask, log_probs: logprobs } = line;
  const { label, reason, weight, is_cut, status, reward } = line;
  const calls = new Map(head.calls.map((call) => [call.call, call]));
  const own = line.calls.flatMap(({ call }) => calls.get(call) ?? []);
  return {
    tokens: Int32Array.from(tokens),
    lossMask: Uint8Array.from(mask),
    logprobs: logprobs && Float64Array.from(logprobs),
    ...{ routedExperts: null, indexerTopk: null },
    ...{ response: '', responseLength: tokens.length - promptLength, status, reward },
    weightVersions: own.flatMap(({ weight_version: version }) => version ?? []),
    cachedTokens: 0,
    promptTokens: own.reduce((sum, { prompt_tokens: count }) => sum + count, 0),
    metadata: { slipway: { rollout_id: head.rollout_id, label, reason, weight, is_cut } },
  };
}

function isEnd(document: unknown): boolean {
  return typeof document === 'object' && document !== null && 'slipway_samples_end' in document;
}
