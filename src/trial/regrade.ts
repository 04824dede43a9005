/** Grading a finished trial again: no agent and no sandbox of its own, only the separate verifier on what the source had collected. */
import type { Sequence } from './sequence.ts';
import { restoreSource } from './stages/restore-source.ts';
import { verifySeparate } from './stages/verify-separate.ts';

export const regradeSequence: Sequence = { start: [], round: [restoreSource, verifySeparate] };
