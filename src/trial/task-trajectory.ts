import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Agent } from '../agents/agent.ts';
import { messageOf, RolloutError } from '../core/errors.ts';
import type { Task } from '../tasks/task.ts';
import { loadTrajectory } from '../trajectory/validate.ts';

/**
 * A task may bring the conversation that its agent is to go on from. An agent that would begin anew would be solving another task:
 * TASK_TRAJECTORY_INVALID when it cannot load one, and when the document is not valid.
 */
export async function checkTaskTrajectory(task: Task, agent: Agent): Promise<void> {
  const [first] = task.steps;
  const field = path.join(first === undefined ? '' : `steps/${first.name}`, 'trajectory.json');
  const file = path.join(task.dir, field);
  if (!existsSync(file)) return;
  try {
    await loadTrajectory(file);
  } catch (error) {
    throw new RolloutError('TASK_TRAJECTORY_INVALID', messageOf(error), {
      phase: 'config',
      field,
      remedy: 'Correct it; `slipway trajectory validate` lists what is wrong.',
      cause: error,
    });
  }
  if (agent.capabilities.loadTrajectory) return;
  throw new RolloutError(
    'TASK_TRAJECTORY_INVALID',
    `the agent ${agent.name} cannot start from the trajectory that the task brings`,
    { phase: 'config', field, remedy: 'Use an agent that can, or remove the file.' },
  );
}
