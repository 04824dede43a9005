/** Reads the payload in which session servers of Miles' kind answer samples (`wire/samples/miles-container.ts`): number for number, nothing is decoded to text. */
import { z } from 'zod';
import type { SampledSpan, TrainingSample } from '../training-sample.ts';
import type { CollectedSession } from './agent-sessions.ts';

const metaSchema = z.object({
  samples: z.array(
    z.object({
      response_length: z.int().min(0),
      status: z.string(),
      weight_versions: z.array(z.string()).default([]),
      nulls: z.array(z.string()).default([]),
    }),
  ),
});
const tensorSchema = z.object({
  dtype: z.string(),
  data_offsets: z.tuple([z.int().min(0), z.int().min(0)]),
});

type SampleMeta = z.output<typeof metaSchema>['samples'][number];

/** Throws for bytes that are no such payload. */
export function readMilesSamples(bytes: Uint8Array): CollectedSession {
  const tensors = new Tensors(bytes);
  const meta = metaSchema.parse(JSON.parse(Buffer.from(tensors.bytes('_samples_meta')).toString()));
  const samples = meta.samples.flatMap((sample, at) =>
    sample.nulls.includes('tokens') ? [] : [trainingSample(sample, at, tensors)],
  );
  return {
    samples: samples.map((sample) => ({ ...sample, weight: 1 / samples.length })),
    wasAborted: meta.samples.some(({ status }) => status === 'aborted'),
  };
}

function trainingSample(meta: SampleMeta, at: number, tensors: Tensors): TrainingSample {
  const tokens = Array.from(new BigInt64Array(tensors.copy(`tokens.${at}`)), Number);
  const promptLength = tokens.length - meta.response_length;
  const isNull = (name: string): boolean => meta.nulls.includes(name);
  const lossMask = isNull('loss_mask')
    ? Array.from({ length: meta.response_length }, (): 0 | 1 => 1)
    : Array.from(tensors.bytes(`loss_mask.${at}`), (bit): 0 | 1 => (bit === 1 ? 1 : 0));
  const logprobs = isNull('rollout_log_probs')
    ? null
    : Array.from(new Float64Array(tensors.copy(`rollout_log_probs.${at}`)));
  if (promptLength < 0 || lossMask.length !== meta.response_length)
    throw new RangeError(`sample ${at} is shorter than it says`);
  return {
    ...{ tokens, promptLength, lossMask, logprobs, weight: 1 },
    isTruncated: meta.status === 'truncated',
    spans: spansOf(lossMask, { promptLength, versions: meta.weight_versions }),
  };
}

/** Runs of trained tokens. Versions come one for each call: where that cannot be told apart only one that all share is known. */
function spansOf(
  lossMask: readonly (0 | 1)[],
  {
    promptLength,
    versions,
  }: { readonly promptLength: number; readonly versions: readonly string[] },
): readonly SampledSpan[] {
  const spans: SampledSpan[] = [];
  for (let begin = lossMask.indexOf(1); begin >= 0;) {
    const zero = lossMask.indexOf(0, begin);
    const end = zero < 0 ? lossMask.length : zero;
    const place = { begin: promptLength + begin, end: promptLength + end };
    spans.push({ ...place, isTrained: true, weightVersion: null });
    begin = lossMask.indexOf(1, end);
  }
  const isOne = new Set(versions).size === 1;
  const isEach = versions.length === spans.length;
  return spans.map((span, at) => ({
    ...span,
    weightVersion: isOne ? (versions[0] ?? null) : isEach ? (versions[at] ?? null) : null,
  }));
}

/** The container: the length of a JSON header, the header, then the tensors. */
class Tensors {
  readonly #data: Uint8Array;
  readonly #header: Readonly<Record<string, unknown>>;

  constructor(bytes: Uint8Array) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const length = Number(view.getBigUint64(0, true));
    if (length > bytes.byteLength - 8)
      throw new RangeError('the header is longer than the payload');
    this.#header = JSON.parse(Buffer.from(bytes.subarray(8, 8 + length)).toString()) as Record<
      string,
      unknown
    >;
    this.#data = bytes.subarray(8 + length);
  }

  bytes(name: string): Uint8Array {
    const {
      data_offsets: [begin, end],
    } = tensorSchema.parse(this.#header[name]);
    if (end > this.#data.byteLength || begin > end)
      throw new RangeError(`tensor ${name} is beyond the payload`);
    return this.#data.subarray(begin, end);
  }

  /** On a boundary of its own, for wider numbers. */
  copy(name: string): ArrayBuffer {
    const bytes = this.bytes(name);
    const copied = new ArrayBuffer(bytes.byteLength);
    new Uint8Array(copied).set(bytes);
    return copied;
  }
}
