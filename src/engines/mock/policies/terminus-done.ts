import type { Policy } from '../policy.ts';

/** Says at once, in the JSON that terminus-2 reads, that the task is complete. */
export const terminusDone: Policy = () => ({
  content: JSON.stringify(
    { analysis: 'Nothing is left to do.', plan: 'Finish.', commands: [], task_complete: true },
    null,
    2,
  ),
});
