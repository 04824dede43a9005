import type { TrajectoryHead } from './trajectory-log.ts';
import { parsePart, readParts } from './document-parts.ts';
import { headFields, isSpillFile, readSpill } from './spill.ts';

/** `field` null = a step. The value is as the document has it: nothing about it is checked. */
export interface TrajectoryPart {
  readonly field: string | null;
  readonly value: unknown;
}

/** The fields and steps of a document or of a spill, one at a time, in their order. TRAJECTORY_INVALID when the outline is broken. */
export async function* streamTrajectory(file: string): AsyncGenerator<TrajectoryPart> {
  if (!isSpillFile(file)) {
    for await (const part of readParts(file))
      yield { field: part.field, value: parsePart(file, part) };
    return;
  }
  for await (const line of readSpill(file))
    if ('slipway_spill' in line) yield* partsOf(line.head);
    else yield { field: null, value: line };
}

function* partsOf(head: TrajectoryHead): Generator<TrajectoryPart> {
  for (const [field, value] of Object.entries(headFields(head))) yield { field, value };
  if (head.notes !== null) yield { field: 'notes', value: head.notes };
  if (head.extra !== null) yield { field: 'extra', value: head.extra };
}
