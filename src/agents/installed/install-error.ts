import { RolloutError } from '../../core/errors.ts';
import type { AgentProgram } from '../agent.ts';

const lastLines = 5;

export interface InstallProblem {
  readonly why: string;
  readonly remedy: string;
  /** What the installer said; its last lines are kept. */
  readonly said?: string;
}

export function notInstalled(
  { packages }: AgentProgram,
  { why, remedy, said = '' }: InstallProblem,
): RolloutError {
  const lines = said.split('\n').filter((line) => line.trim() !== '');
  return new RolloutError(
    'AGENT_SETUP_FAILED',
    `the program of the agent (${packages.join(', ')}) cannot be installed: ${why}`,
    {
      phase: 'agent-setup',
      remedy,
      ...(lines.length > 0 && { detail: lines.slice(-lastLines).join('\n') }),
    },
  );
}
