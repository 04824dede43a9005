import { readdir } from 'node:fs/promises';
import { agentLogsDir } from '../../agents/agent.ts';
import { RolloutError } from '../../core/errors.ts';
import { applyLogFilters } from '../../verifier/log-filters.ts';
import { problemOf } from '../sandboxes.ts';
import type { RoundRun, Stage } from '../stage.ts';

/**
 * Copies the agent's logs to the host, and what the agent wrote on the host back into the sandbox, where hooks and the verifier look for it. Logs
 * decide nothing: a failure is noted as a warning.
 */
export const saveAgentLogs: Stage<RoundRun> = {
  name: 'saving agent logs',
  phase: 'collect',
  isSalvage: true,
  applies: (run) => run.state.isEnvironmentUp,
  async run(run, signal) {
    const { environment, folders, plan, record } = run;
    const { include_logs: include, exclude_logs: exclude } = plan.config.agent;
    const save = async (limited: AbortSignal): Promise<void> => {
      let hasOwnFiles = (await readdir(folders.agent)).length > 0;
      await environment.downloadDir(agentLogsDir, folders.agent, limited, {
        exclude: [...run.agent.hostFiles],
      });
      await applyLogFilters(folders.agent, { include, exclude }, []);
      if (run.agent.readLogs !== undefined && run.outcome.agentExecution !== null) {
        await readLogs(run, limited);
        hasOwnFiles = true;
      }
      if (hasOwnFiles) await environment.uploadDir(folders.agent, agentLogsDir, limited);
    };
    try {
      await record.timed('collect_ms', () =>
        run.roundDeadline.child('collect').within('logs', { signal, expired, work: save }),
      );
    } catch (error) {
      signal.throwIfAborted();
      record.warn(`the agent's logs are incomplete: ${problemOf(error)}`);
    }
  },
};

/** What it finds out may be written beside the logs. */
async function readLogs({ agent, outcome, record }: RoundRun, signal: AbortSignal): Promise<void> {
  try {
    await agent.readLogs?.((result) => (outcome.agentResult = result), signal);
  } catch (error) {
    signal.throwIfAborted();
    record.warn(`the agent could not read its logs: ${problemOf(error)}`);
  }
}

function expired(limitMs: number): RolloutError {
  return new RolloutError(
    'TRANSFER_FAILED',
    `the agent's logs were not copied within ${limitMs / 1000} s`,
    { phase: 'collect', field: agentLogsDir, remedy: 'Let the agent write less there.' },
  );
}
