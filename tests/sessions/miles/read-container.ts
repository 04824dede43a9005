/** Miles' container as its decoder reads it: every tensor is referred to, and everything referred to is there. */
import assert from 'node:assert/strict';

type Fields = Readonly<Record<string, unknown>>;

export interface ReadSample {
  readonly tokens: readonly number[];
  readonly lossMask: readonly number[];
  readonly logprobs: readonly number[];
  readonly fields: Fields;
  readonly metadata: Fields;
  readonly routedExperts: ReadReplay | null;
  readonly indexerTopk: ReadReplay | null;
}

export interface ReadReplay {
  readonly shape: readonly number[];
  readonly values: readonly number[];
}

export interface ReadSamples {
  readonly samples: readonly ReadSample[];
  readonly sessionMetadata: Fields;
  readonly emptyReason: string | null;
}

interface Place {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [number, number];
}

export function readContainer(bytes: Buffer): ReadSamples {
  const length = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, 8 + length).toString()) as Record<string, Place>;
  const left = new Set(Object.keys(header));
  const take = (name: string, dtype: string): Buffer => {
    const place = header[name];
    assert.ok(place !== undefined && left.delete(name), name);
    assert.equal(place.dtype, dtype, name);
    const [from, to] = place.data_offsets;
    return Buffer.from(bytes.subarray(8 + length + from, 8 + length + to));
  };
  const meta = JSON.parse(take('_samples_meta', 'U8').toString()) as {
    readonly samples: readonly Fields[];
    readonly session_metadata: Fields;
    readonly empty_reason: string | null;
  };
  const samples = meta.samples.map((fields, at): ReadSample => {
    const nulls = fields['nulls'] as readonly string[];
    const replay = (name: string): ReadReplay | null => {
      if (nulls.includes(name)) return null;
      const { shape = [] } = header[`${name}.${at}`] ?? {};
      const bytes = take(`${name}.${at}`, 'I32');
      const values = Array.from({ length: bytes.length / 4 }, (_, index) =>
        bytes.readInt32LE(index * 4),
      );
      return { shape, values };
    };
    const ids = take(`tokens.${at}`, 'I64');
    const logprobs = take(`rollout_log_probs.${at}`, 'F64');
    return {
      tokens: wide(ids, (from) => Number(ids.readBigInt64LE(from))),
      lossMask: [...take(`loss_mask.${at}`, 'U8')],
      logprobs: wide(logprobs, (from) => logprobs.readDoubleLE(from)),
      ...{ fields, metadata: fields['metadata'] as Fields },
      routedExperts: replay('rollout_routed_experts'),
      indexerTopk: replay('rollout_indexer_topk'),
    };
  });
  assert.deepEqual([...left], []);
  return {
    ...{ samples, sessionMetadata: meta.session_metadata },
    emptyReason: meta.empty_reason,
  };
}

function wide(bytes: Buffer, read: (from: number) => number): readonly number[] {
  return Array.from({ length: bytes.length / 8 }, (_, at) => read(at * 8));
}
