/** Everything about a trial that can be decided, and refused, before anything is started. */
import path from 'node:path';
import { stat } from 'node:fs/promises';
import { RolloutError } from '../core/errors.ts';
import { withPublishDir } from '../tasks/artifacts.ts';
import { resolveTemplates } from '../tasks/environment-templates.ts';
import { laterPolicies, resolveNetworkPlan, type NetworkPlan } from '../tasks/network-plan.ts';
import { stepFolder } from '../tasks/scripts.ts';
import type { Artifact, CollectHook, Task, TaskStep, User } from '../tasks/task.ts';
import { separateTestScript, testScriptOf, type TestScript } from '../verifier/test-script.ts';
import type { McpServerEntry } from '../wire/harbor/run-config.ts';
import type { TrialConfig } from '../wire/harbor/trial-config.ts';
import { parseAllowedHost, type AllowedHost } from '../wire/network-policy.ts';
import { checkUser } from './capability-checks.ts';
import { refuseUnsupportedConfig } from './config-checks.ts';
import { composeFiles, planSandbox, type PlanOptions, type SandboxPlan } from './sandbox-plan.ts';
import type { Skill, TrialInputs } from './trial-options.ts';

/** One agent run and its verification: all of a single-step task, or one step. */
export interface RoundPlan {
  readonly index: number;
  /** null for a single-step task. */
  readonly step: TaskStep | null;
  readonly instruction: string;
  readonly agentUser: User | null;
  readonly network: NetworkPlan;
  readonly hooks: readonly CollectHook[];
  readonly artifacts: readonly Artifact[];
  readonly verifier: RoundVerifier | null;
}

export interface RoundVerifier {
  readonly mode: 'shared' | 'separate';
  readonly tests: TestScript;
  readonly env: Readonly<Record<string, string>>;
  readonly user: User | null;
  /** For separate mode. */
  readonly sandbox: SandboxPlan | null;
}

export interface TrialPlan {
  readonly config: TrialConfig;
  readonly task: Task;
  /** The agent's. A trial that is graded again starts none: its verifier's stands in, and the task's own environment need not fit. */
  readonly sandbox: SandboxPlan;
  /** Variables of the agent, resolved; they reach only its own commands. */
  readonly agentEnv: Readonly<Record<string, string>>;
  readonly mcpServers: readonly McpServerEntry[];
  readonly skills: readonly Skill[];
  readonly skillsDir: string | null;
  readonly rounds: readonly RoundPlan[];
}

/** Throws CONFIG_INVALID, VARIABLE_UNSET, TASK_ENVIRONMENT_UNDEFINED, TASK_TESTS_MISSING or CAPABILITY_UNSUPPORTED, each naming its field. */
export async function planTrial(options: PlanOptions): Promise<TrialPlan> {
  const { config, provider, hostVariables, warn } = options;
  const { task } = options.inputs;
  for (const warning of task.warnings) warn(warning);
  refuseUnsupportedConfig(config, warn);
  const agentEnv = resolveTemplates(config.agent.env, hostVariables, 'agent.env');
  const steps = task.steps.length === 0 ? [null] : task.steps;
  const networks = steps.map((step) => networkOf(options, step));
  const isRegrade = config.source_trial !== null;
  const agentSandbox = isRegrade ? null : await planAgentSandbox(options, networks);
  const rounds: RoundPlan[] = [];
  for (const [index, step] of steps.entries()) {
    const network = networks[index];
    if (network === undefined) continue;
    const agentUser = step?.agent.user ?? task.agent.user;
    checkUser(provider, agentUser, 'agent.user');
    rounds.push({
      index,
      step,
      instruction: step?.instruction ?? task.instruction,
      agentUser,
      network,
      hooks: hooksOf(task, step),
      artifacts: artifactsOf(config, task, step),
      verifier: config.verifier.disable ? null : await planVerifier(options, step, network),
    });
  }
  if (agentSandbox !== null) for (const round of rounds) checkServices(round, agentSandbox);
  const sandbox =
    agentSandbox ?? rounds[0]?.verifier?.sandbox ?? (await planAgentSandbox(options, networks));
  const { skills, skillsDir } = planSkills(options.inputs);
  return {
    config,
    task,
    sandbox,
    agentEnv,
    mcpServers: mcpServersOf(config, task),
    skills,
    skillsDir,
    rounds,
  };
}

function networkOf({ config, inputs, warn }: PlanOptions, step: TaskStep | null): NetworkPlan {
  const plan = resolveNetworkPlan({
    task: inputs.task,
    step,
    environmentHosts: hosts(config.environment.extra_allowed_hosts, 'environment'),
    agentHosts: hosts(config.agent.extra_allowed_hosts, 'agent'),
  });
  for (const warning of plan.warnings) warn(warning);
  return plan;
}

function hosts(texts: readonly string[], section: string): readonly AllowedHost[] {
  return texts.map((text) => parseAllowedHost(text, `${section}.extra_allowed_hosts`));
}

async function planAgentSandbox(
  options: PlanOptions,
  networks: readonly NetworkPlan[],
): Promise<SandboxPlan> {
  const { config, inputs, provider } = options;
  const { task } = inputs;
  const baseline = networks[0]?.environment ?? task.environment.network;
  const phases = networks.flatMap((network, index) => {
    const { mode } = (task.steps[index] ?? task).verifier;
    return [
      network.agent,
      ...(mode === 'shared' && !config.verifier.disable ? [network.verifier] : []),
    ];
  });
  const plan = await planSandbox(options, {
    section: task.environment,
    contextDir: path.join(task.dir, 'environment'),
    composeFiles: await composeFiles(config),
    forceBuild: config.environment.force_build,
    field: 'environment',
    network: baseline,
    later: laterPolicies(baseline, phases),
  });
  checkUser(provider, task.agent.user, 'agent.user');
  return plan;
}

async function planVerifier(
  options: PlanOptions,
  step: TaskStep | null,
  network: NetworkPlan,
): Promise<RoundVerifier> {
  const { config, inputs, provider, hostVariables } = options;
  const { task } = inputs;
  const section = (step ?? task).verifier;
  const own = section.environment;
  const user = section.user ?? task.verifier.user;
  checkUser(provider, user, 'verifier.user');
  const env = {
    ...resolveTemplates(task.verifier.env, hostVariables, 'verifier.env'),
    ...(step !== null &&
      resolveTemplates(section.env, hostVariables, `steps.${step.name}.verifier.env`)),
    ...resolveTemplates(config.verifier.env, hostVariables, 'verifier.env'),
  };
  if (section.mode === 'shared' || own === null)
    return {
      mode: 'shared',
      tests: await testScriptOf(task, step?.name ?? null),
      env,
      user,
      sandbox: null,
    };
  const baseline = network.verifierEnvironment;
  const sandbox = await planSandbox(options, {
    section: own,
    contextDir: await verifierContext(task, step),
    composeFiles: [],
    forceBuild: false,
    field: 'verifier.environment',
    network: baseline,
    later: laterPolicies(baseline, [network.verifier]),
  });
  return { mode: 'separate', tests: separateTestScript, env, user, sandbox };
}

/** The tests folder of the step, else the task's: the build context of a separate verifier. */
async function verifierContext(task: Task, step: TaskStep | null): Promise<string> {
  const shared = path.join(task.dir, 'tests');
  if (step === null) return shared;
  const own = stepFolder(task.dir, step.name, 'tests');
  return (await stat(own).catch(() => null))?.isDirectory() === true ? own : shared;
}

function hooksOf(task: Task, step: TaskStep | null): readonly CollectHook[] {
  return [...task.verifier.collect, ...(step?.verifier.collect ?? [])];
}

/** Of the task, then of the run, then of the step; the publish folder always. */
function artifactsOf(config: TrialConfig, task: Task, step: TaskStep | null): readonly Artifact[] {
  const declared = [...task.artifacts, ...config.artifacts, ...(step?.artifacts ?? [])];
  return withPublishDir(declared, task.environment.os);
}

function checkServices(round: RoundPlan, sandbox: SandboxPlan): void {
  if (sandbox.image.kind === 'compose') return;
  const found = [...round.artifacts, ...round.hooks].find((entry) => entry.service !== null);
  if (found === undefined) return;
  throw new RolloutError(
    'SERVICE_UNSUPPORTED',
    `the service ${JSON.stringify(found.service)} is named, but the task has no compose file`,
    {
      phase: 'environment',
      field: 'source' in found ? 'artifacts.service' : 'verifier.collect.service',
      remedy: 'Add environment/docker-compose.yaml with that service, or leave the service out.',
    },
  );
}

/** Keyed by name; those of the run win. */
function mcpServersOf(config: TrialConfig, task: Task): readonly McpServerEntry[] {
  const servers = [...task.environment.mcpServers, ...config.agent.mcp_servers];
  return [
    ...new Map(
      servers.map((server) => [server.name, { ...server, args: [...server.args] }]),
    ).values(),
  ];
}

/** Where injected skills go: the task's own folder, else ours. Without any the task's value passes unchanged. */
function planSkills({ task, skills }: TrialInputs): Pick<TrialPlan, 'skills' | 'skillsDir'> {
  const own = task.environment.skillsDir;
  if (skills.length === 0) return { skills, skillsDir: own };
  if (own !== null && !own.startsWith('/'))
    throw new RolloutError('CONFIG_INVALID', 'skills can only be added to an absolute skills_dir', {
      phase: 'config',
      field: 'environment.skills_dir',
      remedy: 'Make environment.skills_dir absolute, or run without --skill.',
    });
  const unique = new Map(skills.map((skill) => [skill.name, skill]));
  const sorted = [...unique.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  return { skills: sorted, skillsDir: own ?? '/harbor/skills' };
}
