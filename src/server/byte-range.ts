export type ByteRange =
  | { readonly kind: 'whole' }
  /** Both ends are in it. */
  | { readonly kind: 'part'; readonly first: number; readonly last: number }
  | { readonly kind: 'unsatisfiable' };

/** Reads a `Range` header. Several ranges, other units and nonsense ask for the whole, as the protocol allows. */
export function readRange(header: string | undefined, sizeBytes: number): ByteRange {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(header?.trim() ?? '') ?? [];
  if (first === '' && last === '') return { kind: 'whole' };
  if (first === '') {
    const count = Math.min(Number(last), sizeBytes);
    if (count === 0) return { kind: 'unsatisfiable' };
    return { kind: 'part', first: sizeBytes - count, last: sizeBytes - 1 };
  }
  const from = Number(first);
  if (last !== '' && Number(last) < from) return { kind: 'whole' };
  if (from >= sizeBytes) return { kind: 'unsatisfiable' };
  const to = last === '' ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1);
  return { kind: 'part', first: from, last: to };
}
