import type { Agent } from '../agents/agent.ts';
import { RolloutError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { seenFromInside } from '../environments/host-address.ts';
import { resolveTemplates } from '../tasks/environment-templates.ts';
import { findSolutionScript } from '../tasks/scripts.ts';
import type { TrialConfig } from '../wire/harbor/trial-config.ts';
import type { AgentInfo } from '../wire/harbor/trial-result.ts';
import type { TrialRun } from './stage.ts';
import { checkTaskTrajectory } from './task-trajectory.ts';
import type { TrialFolder } from './trial-folder.ts';
import type { TrialParts } from './trial-options.ts';
import type { TrialPlan } from './trial-plan.ts';
import { trialSecrets } from './trial-secrets.ts';

/** The agent of a trial's configuration. AGENT_UNKNOWN, or CAPABILITY_UNSUPPORTED when it cannot do what the trial asks of it. */
export async function createAgent(
  plan: TrialPlan,
  {
    parts,
    folder,
    logger,
  }: { readonly parts: TrialParts; readonly folder: TrialFolder; readonly logger: Logger },
): Promise<Agent> {
  const { config, task } = plan;
  const { openRoute } = parts;
  const secrets = trialSecrets(config, { plan, hostVariables: parts.hostVariables });
  const factory = await parts.resolveAgent(config.agent.import_path ?? config.agent.name ?? '');
  const agent = factory({
    name: config.agent.name ?? '',
    modelName: config.agent.model_name,
    kwargs: config.agent.kwargs,
    mcpServers: plan.mcpServers,
    skillsDir: plan.skillsDir,
    logsDir: folder.current.agent,
    solution: {
      findScript: (stepName) =>
        findSolutionScript({ dir: task.dir, os: task.environment.os, stepName }),
      env: () => resolveTemplates(task.solutionEnv, parts.hostVariables, 'solution.env'),
    },
    env: plan.agentEnv,
    hostVariables: parts.hostVariables,
    secrets,
    openEngine: parts.openEngine,
    ...(parts.programs !== undefined && { programs: parts.programs }),
    // With an address of the trial's own, what the agent is given is a gateway already.
    ...((parts.hostEndpoint ?? null) === null &&
      openRoute !== undefined && {
        openRoute: (upstream) => openRoute(upstream, { dir: folder.dir, secrets }),
      }),
    isInstallOnly: config.install_only,
    clock: parts.clock,
    logger,
  });
  const { capabilities } = agent;
  if (config.agent.resume_trajectory && task.steps.length > 1 && !capabilities.resume)
    throw refusal(agent, 'agent.resume_trajectory', 'continue its conversation in a later step');
  if (config.agent.load_trajectory !== null && !capabilities.loadTrajectory)
    throw refusal(agent, 'agent.load_trajectory', 'start from a trajectory');
  if (config.agent.load_trajectory === null && capabilities.ignoresTrajectory !== true)
    await checkTaskTrajectory(task, agent);
  if (task.environment.os === 'windows' && !capabilities.windows)
    throw refusal(agent, 'environment.os', 'work on Windows');
  return agent;
}

function refusal(agent: Agent, field: string, what: string): RolloutError {
  return new RolloutError('CAPABILITY_UNSUPPORTED', `the agent ${agent.name} cannot ${what}`, {
    phase: 'config',
    field,
    remedy: 'Use another agent, or leave the option out.',
  });
}

/** Variables that the agent's commands see in the sandbox, an address of the host endpoint as it is from there. */
export function sandboxVariables({
  plan,
  agent,
  parts,
  environment,
}: Pick<TrialRun, 'plan' | 'agent' | 'parts' | 'environment'>): Readonly<Record<string, string>> {
  const hidden = new Set(agent.hostOnlyVariables);
  const visible = Object.entries(plan.agentEnv).filter(([name]) => !hidden.has(name));
  const { hostEndpoint: endpoint = null } = parts;
  const { hostEndpointUrl: insideUrl } = environment;
  return Object.fromEntries(
    endpoint === null || insideUrl === null
      ? visible
      : visible.map(([name, value]) => [name, seenFromInside(value, { endpoint, insideUrl })]),
  );
}

/** `agent_info`: also for a trial that never came to have an agent. */
export function describeAgent({ agent }: TrialConfig, made: Agent | null): AgentInfo {
  const [first = '', ...rest] = (agent.model_name ?? '').split('/');
  const model = rest.length === 0 ? { name: first, provider: null } : null;
  return {
    name: made?.name ?? agent.name ?? agent.import_path ?? 'unknown',
    version: made?.version ?? 'unknown',
    model_info:
      agent.model_name === null ? null : (model ?? { name: rest.join('/'), provider: first }),
  };
}
