import { attribute, RolloutError } from '../../core/errors.ts';
import { agentEnvironment } from '../agent-environment.ts';
import { sandboxVariables } from '../agent-of-trial.ts';
import type { Stage } from '../stage.ts';

/** Notes which processes are the environment's own, then lets the agent install itself as the agent's user. */
export const setUpAgent: Stage = {
  name: 'setting up agent',
  phase: 'agent-setup',
  async run(run, signal) {
    const { plan, record, agent } = run;
    const environment = agentEnvironment(run.environment, {
      user: plan.task.agent.user,
      env: sandboxVariables(run),
    });
    const setUp = async (limited: AbortSignal): Promise<void> => {
      run.state.baseProcesses = await run.environment.snapshotProcesses(limited);
      try {
        await agent.setup(environment, limited);
      } catch (error) {
        limited.throwIfAborted();
        throw attribute(error, 'AGENT_SETUP_FAILED', 'agent-setup', `agent ${agent.name}`);
      }
    };
    await record.timed('agent_setup_ms', () =>
      record.stamped(
        (timing) => (record.agentSetup = timing),
        () => run.deadline.child('start').within('agent-setup', { signal, expired, work: setUp }),
      ),
    );
  },
};

function expired(limitMs: number): RolloutError {
  return new RolloutError(
    'AGENT_SETUP_TIMEOUT',
    `the agent was not set up after ${limitMs / 1000} s`,
    {
      phase: 'agent-setup',
      field: 'agent.override_setup_timeout_sec',
      remedy: 'Raise agent.override_setup_timeout_sec or --agent-setup-timeout-multiplier.',
    },
  );
}
