/** Looking at trajectories: the work behind `slipway trajectory`. */
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
  if (!isTrajectory)
    throw new RolloutError('TRAJECTORY_INVALID', `${file} has no steps`, {
      phase: 'config',
      field: file,
      remedy: 'Name a trajectory.json, or the trajectory.steps.ndjson of a killed run.',
    });
}
