/**
 * The safetensors container: the length of a JSON header, the header with spaces up to a multiple of eight bytes, then the tensors without gaps. Tensors stand as
 * the format's own library puts them, the widest types first and by name within a type, so that equal tensors make equal bytes.
 */

/** Widest first, which is the order of the format. */
const typeOrder = ['I64', 'F64', 'I32', 'U8'] as const;

export type TensorType = (typeof typeOrder)[number];

export interface Tensor {
  readonly name: string;
  readonly type: TensorType;
  readonly shape: readonly number[];
  /** Little-endian. */
  readonly bytes: Uint8Array;
}

const bytesOfType: Readonly<Record<TensorType, number>> = { I64: 8, F64: 8, I32: 4, U8: 1 };
const headerAlignment = 8;

export function safetensors(tensors: readonly Tensor[]): Buffer {
  const ordered = tensors.toSorted(
    (a, b) =>
      typeOrder.indexOf(a.type) - typeOrder.indexOf(b.type) ||
      Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)),
  );
  const header: Record<string, unknown> = {};
  let end = 0;
  for (const { name, type, shape, bytes } of ordered) {
    const count = shape.reduce((product, size) => product * size, 1);
    if (Object.hasOwn(header, name) || bytes.length !== count * bytesOfType[type])
      throw new RangeError(`tensor ${name} stands twice, or does not have ${count} values`);
    header[name] = { dtype: type, shape, data_offsets: [end, end + bytes.length] };
    end += bytes.length;
  }
  const json = Buffer.from(JSON.stringify(header));
  const padding = (headerAlignment - (json.length % headerAlignment)) % headerAlignment;
  const length = Buffer.alloc(headerAlignment);
  length.writeBigUInt64LE(BigInt(json.length + padding));
  const spaces = Buffer.alloc(padding, ' ');
  return Buffer.concat([length, json, spaces, ...ordered.map(({ bytes }) => bytes)]);
}
