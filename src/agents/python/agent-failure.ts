/** What became of an agent in Python, in our words. */
import { messageOf, RolloutError, type Phase } from '../../core/errors.ts';
import { RunnerBroken, RunnerEnded } from '../../runner/runner-ended.ts';
import type { HarborAgentFailure } from '../../wire/runner/harbor-agent-messages.ts';
import type { EnvironmentRequests } from './environment-requests.ts';

const interpreterRemedy =
  'Name a Python interpreter that has what the agent needs (SLIPWAY_PYTHON), and see that the module is found from the folder of this command or in SLIPWAY_PYTHONPATH.';

/** Names that Harbor gives to limits that have passed, and what they are called where none has: only the trial knows its limits. */
const limitTypes: ReadonlySet<string> = new Set(['AgentTimeoutError', 'AgentSetupTimeoutError']);
const anyTimeout = 'TimeoutError';

/** An exception of the agent's code. A request that was refused stays what it was: a sandbox that went is not the agent's failure. */
export function failureOf(
  failure: HarborAgentFailure,
  {
    name,
    phase,
    requests,
  }: {
    readonly name: string;
    readonly phase: Phase;
    readonly requests: EnvironmentRequests | null;
  },
): RolloutError {
  const { type, message, traceback, is_exit: isExit } = failure;
  const refused = requests?.refused(failure.refused) ?? null;
  if (refused !== null) return refused;
  const code =
    phase === 'agent-setup' ? 'AGENT_SETUP_FAILED' : isExit ? 'AGENT_EXIT_NONZERO' : 'AGENT_FAILED';
  return new RolloutError(code, `agent ${name}: ${type}: ${message}`, {
    phase,
    exceptionType: limitTypes.has(type) ? anyTimeout : type,
    detail: traceback,
  });
}

/** The end of the process in which the agent ran. */
export function endOf(
  error: unknown,
  { importPath, phase }: { readonly importPath: string; readonly phase: Phase },
): unknown {
  const what = `the process of the agent ${importPath}`;
  if (error instanceof RunnerBroken)
    return new RolloutError(
      'CONFIG_INVALID',
      `the agent ${importPath} cannot be made: ${error.message}`,
      {
        phase,
        field: 'agent.import_path',
        remedy: interpreterRemedy,
      },
    );
  if (!(error instanceof RunnerEnded)) return error;
  switch (error.kind) {
    case 'unstartable':
      return new RolloutError('CONFIG_INVALID', `${what} ${messageOf(error)}`, {
        phase,
        field: 'SLIPWAY_PYTHON',
        remedy: interpreterRemedy,
      });
    case 'exited': {
      const code = phase === 'agent' ? 'AGENT_FAILED' : 'AGENT_SETUP_FAILED';
      return new RolloutError(code, `${what} ${error.message}`, { phase, detail: error.lastWords });
    }
    case 'late':
    case 'killed':
    case 'protocol':
    case 'terminated':
      return new RolloutError('RUNNER_FAILED', `${what} ${error.message}`, {
        phase,
        remedy: 'Run the trial again; see whether the machine has enough memory.',
        detail: error.lastWords,
      });
  }
}
