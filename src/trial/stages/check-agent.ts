import { attribute, RolloutError } from '../../core/errors.ts';
import type { Stage } from '../stage.ts';

/** Lets the agent look for its model before a sandbox is paid for. */
export const checkAgent: Stage = {
  name: 'checking agent',
  phase: 'agent-setup',
  applies: ({ agent, plan }) => agent.preflight !== undefined && !plan.config.install_only,
  async run({ agent, deadline }, signal) {
    const check = async (limited: AbortSignal): Promise<void> => {
      try {
        await agent.preflight?.(limited);
      } catch (error) {
        limited.throwIfAborted();
        throw attribute(error, 'AGENT_SETUP_FAILED', 'agent-setup', `agent ${agent.name}`);
      }
    };
    await deadline.child('start').within('preflight', { signal, expired, work: check });
  },
};

function expired(limitMs: number): RolloutError {
  return new RolloutError(
    'AGENT_SETUP_TIMEOUT',
    `the agent did not find out within ${limitMs / 1000} s whether it can run`,
    { phase: 'agent-setup', remedy: 'See whether the address of its model answers.' },
  );
}
