/**
 * Samples as Miles takes them from a session server: one safetensors payload with a few tensors per sample, and a tensor of JSON, `_samples_meta`, with everything
 * else. Its decoder refuses whatever it does not expect; no value may change on the way, so a mask that is not 0 or 1 and a number that is not finite are errors.
 */
import { exactJson } from '../../core/exact-json.ts';
import { safetensors, type Tensor, type TensorType } from './safetensors.ts';

export type MilesStatus = 'pending' | 'completed' | 'truncated' | 'aborted' | 'failed';

/** Per position of the model's layers: `shape` is [tokens − 1, layers, k]. */
export interface ReplayTensor {
  readonly shape: readonly [number, number, number];
  readonly values: Int32Array;
}

export interface MilesSample {
  /** Prompt and response. */
  readonly tokens: Int32Array | null;
  /** Of the response. */
  readonly lossMask: Uint8Array | null;
  readonly logprobs: Float64Array | null;
  readonly routedExperts: ReplayTensor | null;
  readonly indexerTopk: ReplayTensor | null;
  readonly response: string;
  readonly responseLength: number;
  readonly status: MilesStatus;
  /** One for each call. */
  readonly weightVersions: readonly string[];
  readonly cachedTokens: number;
  readonly promptTokens: number;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Of any kind that JSON knows, null = none; absent = the first version of the protocol, which has no rewards. */
  readonly reward?: unknown;
}

export interface MilesSamples {
  readonly samples: readonly MilesSample[];
  readonly sessionMetadata: Readonly<Record<string, unknown>>;
  /** Why there are no samples; null where there are some. */
  readonly emptyReason: 'no_records' | 'all_truncated' | null;
}

export function milesContainer({ samples, sessionMetadata, emptyReason }: MilesSamples): Buffer {
  const tensors: Tensor[] = [];
  const described = samples.map((sample, at) => {
    const own = tensorsOf(sample);
    for (const [name, tensor] of own)
      if (tensor !== null) tensors.push({ ...tensor, name: `${name}.${at}` });
    return {
      response: sample.response,
      response_length: sample.responseLength,
      status: sample.status,
      weight_versions: sample.weightVersions,
      prefix_cache_info: {
        cached_tokens: sample.cachedTokens,
        total_prompt_tokens: sample.promptTokens,
      },
      metadata: sample.metadata,
      ...(sample.reward !== undefined && { reward: sample.reward }),
      nulls: own.filter(([, tensor]) => tensor === null).map(([name]) => name),
    };
  });
  const meta = Buffer.from(
    exactJson({ samples: described, session_metadata: sessionMetadata, empty_reason: emptyReason }),
  );
  return safetensors([...tensors, tensor('_samples_meta', 'U8', meta)]);
}

type NamedTensor = readonly [name: string, tensor: Tensor | null];

function tensorsOf(sample: MilesSample): readonly NamedTensor[] {
  const { tokens, lossMask, logprobs, routedExperts, indexerTopk } = sample;
  if (lossMask?.some((value) => value > 1) === true) throw new RangeError('a mask is 0 or 1');
  if (logprobs?.some((value) => !Number.isFinite(value)) === true)
    throw new RangeError('a log-probability is not finite');
  return [
    ['tokens', tokens && tensor('', 'I64', wideIds(tokens))],
    ['loss_mask', lossMask && tensor('', 'U8', lossMask)],
    ['rollout_log_probs', logprobs && tensor('', 'F64', bytesOf(logprobs))],
    ['rollout_routed_experts', replay(routedExperts)],
    ['rollout_indexer_topk', replay(indexerTopk)],
  ];
}

function replay(given: ReplayTensor | null): Tensor | null {
  return given && { name: '', type: 'I32', shape: given.shape, bytes: bytesOf(given.values) };
}

function tensor(name: string, type: TensorType, bytes: Uint8Array): Tensor {
  const width = type === 'U8' ? 1 : 8;
  return { name, type, shape: [bytes.length / width], bytes };
}

/** Ids as 64-bit integers: they are never negative, so the upper halves are zero. */
function wideIds(ids: Int32Array): Uint8Array {
  const halves = new Int32Array(ids.length * 2);
  for (const [at, id] of ids.entries()) {
    if (id < 0) throw new RangeError('a token id is negative');
    halves[at * 2] = id;
  }
  return bytesOf(halves);
}

function bytesOf(array: Int32Array | Float64Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}
