import type { GenerateRequest } from '../engine.ts';
import { listOf } from './json.ts';

/** The stop strings that a request names, among its sampling parameters or in its further fields, which win. */
export function stopsOf({ sampling, extraBody }: GenerateRequest): readonly unknown[] {
  const further = extraBody?.['stop'];
  if (further === undefined) return sampling.stop ?? [];
  return listOf(further) ?? [further];
}
