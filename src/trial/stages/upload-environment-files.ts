import { RolloutError } from '../../core/errors.ts';
import { workingFolder } from '../sandbox-folders.ts';
import type { Stage } from '../stage.ts';

/** Brings the contents of `environment/` into the working folder of a prebuilt image. */
export const uploadEnvironmentFiles: Stage = {
  name: 'bringing environment files',
  phase: 'environment',
  applies: (run) => run.plan.sandbox.uploadDir !== null,
  async run({ plan, environment, deadline }, signal) {
    const { uploadDir } = plan.sandbox;
    if (uploadDir === null) return;
    await deadline.child('start').within('upload', {
      signal,
      expired: (limitMs) =>
        new RolloutError(
          'TRANSFER_FAILED',
          `environment/ was not in the sandbox after ${limitMs / 1000} s`,
          {
            phase: 'environment',
            field: 'environment',
            remedy: 'Make environment/ smaller, or build its files into the image.',
          },
        ),
      work: async (limited) => {
        const to = await workingFolder(environment, { user: null }, limited);
        await environment.uploadDir(uploadDir, to, limited);
      },
    });
  },
};
