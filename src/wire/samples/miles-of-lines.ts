/**
 * The payload that clients of Miles take, made of the lines of a file of samples. What a sample says in words is in no line, so that `response` is empty; the ids
 * are all that a trainer needs. Replay payloads become tensors where they are whole 32-bit integers for each token but the last; how many layers a model has
 * they do not say themselves.
 */
import { milesContainer, type MilesSample, type ReplayTensor } from './miles-container.ts';
import {
  sampleLineSchema,
  samplesHeadSchema,
  type SampleLine,
  type SamplesHead,
} from './sample-lines.ts';

export class MilesOfLines {
  readonly #layers: number | null;
  #head: SamplesHead | null = null;
  readonly #samples: MilesSample[] = [];

  /** `layers`: of the model's routed experts; null = not known. */
  constructor({ layers }: { readonly layers: number | null }) {
    this.#layers = layers;
  }

  /** In their order. Throws for one that is none of such a file. */
  line(text: string): void {
    const document: unknown = JSON.parse(text);
    if (this.#head === null) this.#head = samplesHeadSchema.parse(document);
    else if (!isEnd(document))
      this.#samples.push(this.#sample(sampleLineSchema.parse(document), this.#head));
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

  #sample(line: SampleLine, head: SamplesHead): MilesSample {
    const { tokens, prompt_length: promptLength, loss_mask: mask, log_probs: logprobs } = line;
    const { label, reason, weight, is_cut, status, reward, replay = {} } = line;
    const calls = new Map(head.calls.map((call) => [call.call, call]));
    const own = line.calls.flatMap(({ call }) => calls.get(call) ?? []);
    const routedExperts = tensorOf(replay.routed_experts, { line, layers: this.#layers });
    const layersOfIndexer = replay.indexer_topk_num_layers;
    const indexerTopk = tensorOf(replay.indexer_topk, { line, layers: layersOfIndexer });
    const unread = [
      ...(replay.routed_experts !== undefined && routedExperts === null ? ['routed_experts'] : []),
      ...(replay.indexer_topk !== undefined && indexerTopk === null ? ['indexer_topk'] : []),
    ];
    return {
      tokens: Int32Array.from(tokens),
      lossMask: Uint8Array.from(mask),
      logprobs: logprobs && Float64Array.from(logprobs),
      ...{ routedExperts, indexerTopk },
      ...{ response: '', responseLength: tokens.length - promptLength, status, reward },
      weightVersions: own.flatMap(({ weight_version: version }) => version ?? []),
      cachedTokens: own.reduce((sum, { cached_tokens: count = 0 }) => sum + count, 0),
      promptTokens: own.reduce((sum, { prompt_tokens: count }) => sum + count, 0),
      metadata: {
        slipway: {
          ...{ rollout_id: head.rollout_id, label, reason, weight, is_cut },
          ...(unread.length > 0 && { unread }),
        },
      },
    };
  }
}

/** null = it is none, or not about these tokens: nothing is made up for it. */
function tensorOf(
  payload: unknown,
  { line, layers }: { readonly line: SampleLine; readonly layers: unknown },
): ReplayTensor | null {
  if (typeof payload !== 'string' || typeof layers !== 'number' || layers < 1) return null;
  const last = line.calls.at(-1);
  // It is about the call as it was, of which the sample may have less.
  const said = (last?.end ?? 0) + (last?.missing?.ids.length ?? 0) - 1;
  const bytes = Buffer.from(payload, 'base64');
  const perToken = bytes.length / Int32Array.BYTES_PER_ELEMENT / said;
  if (said < 1 || !Number.isInteger(perToken / layers) || perToken === 0) return null;
  const rows = line.tokens.length - 1;
  const values = new Int32Array(rows * perToken);
  for (const at of values.keys()) values[at] = bytes.readInt32LE(at * Int32Array.BYTES_PER_ELEMENT);
  return { shape: [rows, layers, perToken / layers], values };
}

function isEnd(document: unknown): boolean {
  return typeof document === 'object' && document !== null && 'slipway_samples_end' in document;
}
