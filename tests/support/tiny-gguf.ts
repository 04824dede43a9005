/**
 * A language model of 250 KB with seeded random weights, as a GGUF file: two layers, 64 wide, bytes and control tokens as its vocabulary. It says
 * nothing of sense, but its ids and log-probabilities are as real as those of a large one.
 */
import { writeFile } from 'node:fs/promises';
import { byteCharacters } from '../../src/engines/server/vocabulary/byte-alphabet.ts';

const width = 64;
const layers = 2;
const feedForward = 96;
const heads = 4;
const alignment = 32;

export const tinyControlTokens = ['<|endoftext|>', '<|im_start|>', '<|im_end|>'] as const;

/** Numbers of the format: types of values, and of tensors. */
const types = { uint32: 4, int32: 5, float32: 6, string: 8, array: 9 };
const tensorFloat32 = 0;

export interface TinyGgufOptions {
  readonly chatTemplate?: string;
  /** How the file calls the kind of its vocabulary. */
  readonly vocabularyModel?: string;
}

export async function writeTinyGguf(file: string, options: TinyGgufOptions = {}): Promise<void> {
  const merges = ['t h', 'th e', 'Ġ the', 'i n', 'e r'];
  const merged = merges.map((merge) => merge.replace(' ', ''));
  const tokens = [...byteCharacters, ...merged, ...tinyControlTokens];
  const endId = tokens.indexOf('<|endoftext|>');
  const metadata: readonly (readonly [string, Buffer])[] = [
    ['general.architecture', text('llama')],
    ['general.name', text('tiny')],
    ['llama.context_length', uint32(2048)],
    ['llama.embedding_length', uint32(width)],
    ['llama.block_count', uint32(layers)],
    ['llama.feed_forward_length', uint32(feedForward)],
    ['llama.attention.head_count', uint32(heads)],
    ['llama.attention.head_count_kv', uint32(heads)],
    ['llama.attention.layer_norm_rms_epsilon', float32(1e-5)],
    ['llama.rope.dimension_count', uint32(width / heads)],
    ['tokenizer.ggml.model', text(options.vocabularyModel ?? 'gpt2')],
    ['tokenizer.ggml.pre', text('gpt-2')],
    ['tokenizer.ggml.tokens', list(types.string, tokens.map(plainText))],
    [
      'tokenizer.ggml.token_type',
      list(
        types.int32,
        tokens.map((_, id) => int32(id < endId ? 1 : 3)),
      ),
    ],
    ['tokenizer.ggml.merges', list(types.string, merges.map(plainText))],
    ['tokenizer.ggml.bos_token_id', uint32(endId)],
    ['tokenizer.ggml.eos_token_id', uint32(endId)],
    ...(options.chatTemplate === undefined
      ? []
      : [['tokenizer.chat_template', text(options.chatTemplate)] as const]),
  ];

  const random = normalNumbers();
  const tensors = tensorShapes(tokens.length).map(([name, shape]) => {
    const count = shape.reduce((product, size) => product * size, 1);
    const isNorm = shape.length === 1;
    const values = Float32Array.from({ length: count }, () => (isNorm ? 1 : random() * 0.15));
    return { name, shape, bytes: Buffer.from(values.buffer) };
  });
  let offset = 0;
  const descriptions = tensors.map(({ name, shape, bytes }) => {
    const parts = [plainText(name), int32(shape.length), ...shape.map(uint64)];
    const description = Buffer.concat([...parts, int32(tensorFloat32), uint64(offset)]);
    offset += bytes.length;
    return description;
  });
  const head = Buffer.concat([
    Buffer.from('GGUF'),
    int32(3),
    uint64(tensors.length),
    uint64(metadata.length),
    ...metadata.flatMap(([key, value]) => [plainText(key), value]),
    ...descriptions,
  ]);
  const padding = Buffer.alloc((alignment - (head.length % alignment)) % alignment);
  await writeFile(file, Buffer.concat([head, padding, ...tensors.map(({ bytes }) => bytes)]));
}

/** Every size is a multiple of the alignment, so the tensors follow each other without gaps. */
function tensorShapes(vocabularySize: number): (readonly [string, readonly number[]])[] {
  const blocks = Array.from({ length: layers }, (_, layer) => [
    [`blk.${layer}.attn_norm.weight`, [width]] as const,
    [`blk.${layer}.attn_q.weight`, [width, width]] as const,
    [`blk.${layer}.attn_k.weight`, [width, width]] as const,
    [`blk.${layer}.attn_v.weight`, [width, width]] as const,
    [`blk.${layer}.attn_output.weight`, [width, width]] as const,
    [`blk.${layer}.ffn_norm.weight`, [width]] as const,
    [`blk.${layer}.ffn_gate.weight`, [width, feedForward]] as const,
    [`blk.${layer}.ffn_up.weight`, [width, feedForward]] as const,
    [`blk.${layer}.ffn_down.weight`, [feedForward, width]] as const,
  ]);
  return [
    ['token_embd.weight', [width, vocabularySize]],
    ['output_norm.weight', [width]],
    ['output.weight', [width, vocabularySize]],
    ...blocks.flat(),
  ];
}

function normalNumbers(): () => number {
  let state = 11;
  const uniform = (): number => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return (state + 1) / 2147483649;
  };
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes;
}

function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

/** A string without the number of its type before it. */
function plainText(value: string): Buffer {
  const bytes = Buffer.from(value, 'utf8');
  return Buffer.concat([uint64(bytes.length), bytes]);
}

const text = (value: string): Buffer => Buffer.concat([int32(types.string), plainText(value)]);
const uint32 = (value: number): Buffer => Buffer.concat([int32(types.uint32), int32(value)]);

function float32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return Buffer.concat([int32(types.float32), bytes]);
}

function list(type: number, items: readonly Buffer[]): Buffer {
  return Buffer.concat([int32(types.array), int32(type), uint64(items.length), ...items]);
}
