import { isRolloutError, RolloutError } from '../../core/errors.ts';
import { isSamePolicy } from '../../wire/network-policy.ts';
import { switchNetwork } from '../network-phase.ts';
import type { RoundRun, Stage } from '../stage.ts';

/**
 * Kills every process that is not the environment's own and has it proven; only then does the network of the phase end. A process that cannot be
 * proven dead is AGENT_NOT_STOPPED: no verifier runs beside it. A separate verifier runs elsewhere, so there the failure is only noted.
 */
export const stopAgent: Stage<RoundRun> = {
  name: 'stopping agent',
  phase: 'agent-stop',
  isSalvage: true,
  applies: (run) => run.state.isEnvironmentUp && run.state.baseProcesses !== null,
  async run(run, signal) {
    const { outcome, record, round } = run;
    try {
      await record.timed('agent_stop_ms', () => kill(run, signal));
    } catch (error) {
      signal.throwIfAborted();
      if (round.verifier?.mode !== 'separate' || isRolloutError(error, 'ENVIRONMENT_LOST'))
        throw error;
      outcome.failure ??= record.note(error);
    }
    const { environment, agent } = round.network;
    if (!isSamePolicy(environment, agent))
      await switchNetwork(run.environment, environment, signal);
  },
};

async function kill(run: RoundRun, signal: AbortSignal): Promise<void> {
  const keep = run.keptProcesses ?? run.state.baseProcesses ?? { keys: new Set<string>() };
  run.outcome.agentStop = await run.roundDeadline.within('agent-stop', {
    signal,
    expired,
    work: (limited) => run.environment.killProcesses(keep, limited),
  });
}

function expired(limitMs: number): RolloutError {
  return new RolloutError(
    'AGENT_NOT_STOPPED',
    `processes of the agent were not proven dead within ${limitMs / 1000} s`,
    { phase: 'agent-stop', remedy: 'Run the trial again.' },
  );
}
