/**
 * What one call adds to a path: ids of the new prompt, ids that were sampled, and the log-probabilities of the latter. Numbers keep their bits: log-probabilities
 * are held as 32-bit floats only where each of them is one. They are in memory, or in the spill file of their forest.
 */
import { createHash } from 'node:crypto';

export type Logprobs = Float32Array | Float64Array;

export interface TokenArrays {
  /** Prompt first, then output. */
  readonly ids: Int32Array;
  /** One per output id; null = the engine did not say. */
  readonly logprobs: Logprobs | null;
}

/** Where arrays are that are not in memory. */
export interface SpilledArrays {
  readonly offset: number;
  readonly ids: number;
  readonly logprobs: { readonly count: number; readonly bytesEach: 4 | 8 } | null;
}

export const idBytes = Int32Array.BYTES_PER_ELEMENT;

export function packIds(ids: Int32Array | readonly number[]): Int32Array {
  return ids instanceof Int32Array ? ids : Int32Array.from(ids);
}

/** As 32-bit floats where that changes no bit. */
export function packLogprobs(logprobs: Logprobs | readonly number[]): Logprobs {
  if (logprobs instanceof Float32Array) return logprobs;
  const isSingle = logprobs.every((value: number) => Math.fround(value) === value);
  return isSingle ? Float32Array.from(logprobs) : Float64Array.from(logprobs);
}

export function sizeOf({ ids, logprobs }: TokenArrays): number {
  return ids.byteLength + (logprobs?.byteLength ?? 0);
}

/** The bytes of an array, not copied. All machines that Node runs on are little-endian. */
export function bytesOf(array: Int32Array | Logprobs): Buffer {
  return Buffer.from(array.buffer, array.byteOffset, array.byteLength);
}

export function equalIds(left: Int32Array, right: Int32Array): boolean {
  return left.length === right.length && bytesOf(left).equals(bytesOf(right));
}

/** Ids of a path as one hash, so that a prompt can be compared with ids that are on disk. */
export function hashIds(ids: Int32Array): string {
  return createHash('sha256').update(bytesOf(ids)).digest('base64');
}
