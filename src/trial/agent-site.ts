/** What an agent has the sandbox made with: folders of programs, and the one address that its model is behind. */
import type { Agent, AgentSite } from '../agents/agent.ts';
import { attribute, RolloutError } from '../core/errors.ts';
import type { DeadlineScope } from './deadline-scope.ts';

const nothing: AgentSite = { layers: [], hostEndpoint: null, secrets: [] };

/** Within the limit of the agent's setup: whatever is installed for the first time counts as that. An agent that fails is closed. */
export async function agentSite(
  agent: Agent,
  { deadline, signal }: { readonly deadline: DeadlineScope; readonly signal: AbortSignal },
): Promise<AgentSite> {
  if (agent.prepareSite === undefined) return nothing;
  const prepare = async (limited: AbortSignal): Promise<AgentSite> => {
    try {
      return (await agent.prepareSite?.(limited)) ?? nothing;
    } catch (error) {
      limited.throwIfAborted();
      throw attribute(error, 'AGENT_SETUP_FAILED', 'agent-setup', `agent ${agent.name}`);
    }
  };
  try {
    return await deadline.child('start').within('agent-setup', { signal, expired, work: prepare });
  } catch (error) {
    await agent.close?.();
    throw error;
  }
}

function expired(limitMs: number): RolloutError {
  return new RolloutError(
    'AGENT_SETUP_TIMEOUT',
    `the agent's program was not installed after ${limitMs / 1000} s`,
    {
      phase: 'agent-setup',
      field: 'agent.override_setup_timeout_sec',
      remedy: 'Run the trial again: what was fetched is kept.',
    },
  );
}
