import type { RoundRun, Stage } from '../stage.ts';

/** Moves what a step left on the host into the folder of that step. */
export const archiveStep: Stage<RoundRun> = {
  name: 'archiving step',
  phase: 'collect',
  isSalvage: true,
  applies: (run) => run.round.step !== null,
  async run({ folder, round }) {
    if (round.step !== null) await folder.archiveStep(round.step.name);
  },
};
