import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { before, test } from 'node:test';
import { milesContainer, type MilesSample } from '../../src/wire/samples/miles-container.ts';
import { safetensors, type Tensor } from '../../src/wire/samples/safetensors.ts';
import { repositoryDir } from '../support/slipway-cli.ts';

const sample: MilesSample = {
  tokens: Int32Array.of(5, 6, 7, 0, 151_645, 9),
  lossMask: Uint8Array.of(1, 1, 0, 1),
  logprobs: Float64Array.of(-0.25, -0, 0, -1.0000000000000002),
  routedExperts: { shape: [5, 1, 2], values: Int32Array.from({ length: 10 }, (_, at) => at - 3) },
  indexerTopk: null,
  response: 'ünïcode 🙂 "\n',
  responseLength: 4,
  status: 'completed',
  weightVersions: ['3', '4'],
  cachedTokens: 2,
  promptTokens: 8,
  metadata: { leaf: { node_id: 1 } },
  reward: 0.5,
};
/** As the first version of the protocol has it. */
const empty: MilesSample = {
  ...{ tokens: null, lossMask: new Uint8Array(), logprobs: null },
  ...{ routedExperts: null, indexerTopk: null, response: '', responseLength: 0 },
  ...{ status: 'aborted', weightVersions: [], cachedTokens: 2, promptTokens: 8 },
  metadata: { leaf: { node_id: 1 } },
};
const whole = milesContainer({
  samples: [sample, empty],
  sessionMetadata: { accumulated_token_ids: [5, 6], max_trim_tokens: 1 },
  emptyReason: null,
});

interface Parts {
  readonly header: Record<string, { dtype: string; shape: number[]; data_offsets: number[] }>;
  readonly data: Buffer;
}

function partsOf(payload: Buffer): Parts {
  const length = Number(payload.readBigUInt64LE());
  const header = JSON.parse(payload.toString('utf8', 8, 8 + length)) as Parts['header'];
  return { header, data: payload.subarray(8 + length) };
}

/** The container with its header and data changed by hand. */
function broken(change: (parts: Parts) => Parts | undefined): Buffer {
  const parts = partsOf(whole);
  const { header, data } = change(parts) ?? parts;
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([length, json, data]);
}

type Meta = Record<string, unknown> & { readonly samples: Record<string, unknown>[] };

/** The container with another meta. */
function reworded(change: (meta: Meta) => unknown): Buffer {
  const { header, data } = partsOf(whole);
  const tensors = Object.entries(header).map(
    ([
      name,
      {
        dtype,
        shape,
        data_offsets: [from, to],
      },
    ]) => ({
      ...{ name, type: dtype as Tensor['type'], shape },
      bytes: data.subarray(from, to),
    }),
  );
  const index = tensors.findIndex(({ name }) => name === '_samples_meta');
  const meta = JSON.parse(tensors[index]!.bytes.toString()) as Meta;
  const bytes = Buffer.from(JSON.stringify(change(meta)));
  return safetensors(tensors.with(index, { ...tensors[index]!, shape: [bytes.length], bytes }));
}

function withFields(meta: Meta, at: number, fields: Record<string, unknown>): Meta {
  return { ...meta, samples: meta.samples.with(at, { ...meta.samples[at], ...fields }) };
}

function retyped(name: string, dtype: string, shape: number[]): Buffer {
  return broken(({ header }) => {
    Object.assign(header[name]!, { dtype, shape });
    return undefined;
  });
}

const refusals: Readonly<Record<string, readonly [payload: Buffer, says: RegExp]>> = {
  nothing: [Buffer.alloc(0), /shorter than its length/],
  'half a header': [whole.subarray(0, 40), /shorter than its header/],
  'a tensor that is cut off': [whole.subarray(0, -1), /shorter than its tensors/],
  'a byte too many': [Buffer.concat([whole, Buffer.alloc(1)]), /behind the last tensor/],
  'no meta': [safetensors([]), /no meta/],
  'a meta of integers': [retyped('_samples_meta', 'I32', [1]), /differ|malformed/],
  'a meta that is a list': [reworded(() => []), /no object/],
  'a meta without samples': [reworded(({ session_metadata }) => ({ session_metadata })), /fields/],
  'tokens of 32 bits': [retyped('tokens.0', 'I32', [12]), /the type of tokens/],
  'a mask of another rank': [retyped('loss_mask.0', 'U8', [4, 1]), /the type of loss_mask/],
  'a null on a field that is no tensor': [
    reworded((meta) => withFields(meta, 0, { nulls: ['response'] })),
    /a null that is no tensor/,
  ],
  'a tensor that is promised and missing': [
    reworded((meta) => withFields(meta, 1, { nulls: [] })),
    /a tensor is missing/,
  ],
  'a tensor that nobody has': [
    reworded((meta) =>
      withFields(meta, 0, { nulls: ['rollout_indexer_topk', 'rollout_routed_experts'] }),
    ),
    /belongs to no sample/,
  ],
  'metadata that is a list': [
    reworded((meta) => withFields(meta, 0, { metadata: [] })),
    /metadata/,
  ],
  'a status of nobody': [reworded((meta) => withFields(meta, 0, { status: 'done' })), /a status/],
  'a hole between tensors': [
    broken(({ header, data }) => {
      for (const tensor of Object.values(header))
        tensor.data_offsets = tensor.data_offsets.map((at) => at + 8);
      return { header, data: Buffer.concat([Buffer.alloc(8), data]) };
    }),
    /a hole/,
  ],
};

interface Read {
  readonly name: string;
  readonly refused?: string;
  readonly read?: { readonly samples: readonly Record<string, unknown>[] };
}
const results = new Map<string, Read>();

before(() => {
  const cases = Object.entries({ whole: [whole] as const, ...refusals }).map(([name, [payload]]) =>
    JSON.stringify({ name, payload: payload.toString('base64') }),
  );
  const reader = path.join(import.meta.dirname, 'miles_samples.py');
  const printed = execFileSync('python3', ['-I', reader], { input: `${cases.join('\n')}\n` });
  for (const line of printed.toString().trim().split('\n')) {
    const result = JSON.parse(line) as Read;
    results.set(result.name, result);
  }
});

test('a strict reader in Python reads every field, bit for bit', () => {
  const [first, second] = results.get('whole')?.read?.samples ?? [];
  const { rollout_log_probs: logprobs, ...rest } = first ?? {};
  assert.deepEqual(Float64Array.from(logprobs as number[]), sample.logprobs);
  assert.ok(Object.is((logprobs as number[])[1], -0));
  assert.deepEqual(rest, {
    ...{ tokens: [5, 6, 7, 0, 151_645, 9], loss_mask: [1, 1, 0, 1], rollout_indexer_topk: null },
    rollout_routed_experts: [-3, -2, -1, 0, 1, 2, 3, 4, 5, 6],
    ...{ response: sample.response, response_length: 4, status: 'completed', reward: 0.5 },
    weight_versions: ['3', '4'],
    prefix_cache_info: { cached_tokens: 2, total_prompt_tokens: 8 },
    ...{ metadata: sample.metadata, nulls: ['rollout_indexer_topk'] },
  });
  // Nothing is not the same as no value.
  assert.deepEqual([second?.['tokens'], second?.['loss_mask']], [null, []]);
  assert.ok(!Object.hasOwn(second ?? {}, 'reward'));
});

for (const [name, [, says]] of Object.entries(refusals))
  test(`the strict reader refuses ${name}`, () => {
    assert.match(results.get(name)?.refused ?? 'it was read', says);
  });

test('the bytes are those of the safetensors library', () => {
  const file = path.join(repositoryDir, 'tests/golden/samples/container.safetensors');
  assert.deepEqual(whole, readFileSync(file));
});

test('what would change on the way is an error', () => {
  const make = (change: Partial<MilesSample>): Buffer =>
    milesContainer({
      ...{ samples: [{ ...sample, ...change }], sessionMetadata: {}, emptyReason: null },
    });
  assert.throws(() => make({ lossMask: Uint8Array.of(255, 1, 1, 1) }), /a mask is 0 or 1/);
  assert.throws(() => make({ logprobs: Float64Array.of(0, NaN, 0, 0) }), /not finite/);
  assert.throws(() => make({ tokens: Int32Array.of(-1) }), /negative/);
  const values = new Int32Array(9);
  assert.throws(() => make({ routedExperts: { shape: [5, 1, 2], values } }), /does not have 10/);
});

test('no samples have a reason', () => {
  const payload = milesContainer({ samples: [], sessionMetadata: {}, emptyReason: 'no_records' });
  assert.deepEqual(Object.keys(partsOf(payload).header), ['_samples_meta']);
  assert.equal(Number(payload.readBigUInt64LE()) % 8, 0);
});
