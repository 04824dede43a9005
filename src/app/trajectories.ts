/** Looking at trajectories: the work behind `slipway trajectory`. */
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { boundary, RolloutError } from '../core/errors.ts';
import { streamTrajectory, type TrajectoryPart } from '../trajectory/stream-trajectory.ts';
import { validateTrajectoryFile } from '../trajectory/validate.ts';

export type { TrajectoryPart };
export { stepView, type StepView } from '../trajectory/step-view.ts';

export interface CheckedTrajectory {
  readonly file: string;
  readonly errors: readonly string[];
}

/** Every error of a file; rejects with the system's error when it cannot be read. */
export async function checkTrajectory(
  file: string,
  options: { readonly checksImages: boolean },
): Promise<CheckedTrajectory> {
  return { file, errors: await validateTrajectoryFile(resolve(file), options) };
}

/** The parts of a trajectory or of a spill, in order. TRAJECTORY_INVALID when it cannot be read. */
export async function* trajectoryParts(
  file: string,
  signal: AbortSignal,
): AsyncGenerator<TrajectoryPart> {
  const found = await stat(file).catch(() => null);
  if (found === null) throw noTrajectory(file, 'there is no such file');
  if (found.isDirectory()) throw noTrajectory(file, 'this is a folder');
  const parts = streamTrajectory(resolve(file));
  let isTrajectory = false;
  try {
    for (;;) {
      signal.throwIfAborted();
      const next = await boundary(
        { code: 'TRAJECTORY_INVALID', phase: 'config', what: `reading ${file}` },
        () => parts.next(),
      );
      if (next.done === true) break;
      isTrajectory ||= next.value.field === null || next.value.field === 'steps';
      yield next.value;
    }
  } finally {
    await parts.return(undefined);
  }
  if (!isTrajectory) throw noTrajectory(file, 'the file has no steps');
}

function noTrajectory(file: string, message: string): RolloutError {
  return new RolloutError('TRAJECTORY_INVALID', message, {
    phase: 'config',
    field: file,
    remedy:
      'Name a trajectory.json, in the folder agent of a trial, or the trajectory.steps.ndjson of a killed run.',
  });
}
