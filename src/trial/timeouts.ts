/** The limits of one trial: Harbor's, with its overrides, maxima and multipliers, and ours for the waits that Harbor leaves open. */
import type { CollectHook, Healthcheck, Task, TaskStep } from '../tasks/task.ts';
import type { TrialConfig } from '../wire/harbor/trial-config.ts';
import { group, leaf, type Span } from './deadlines.ts';

const defaultAgentSetupMs = 360_000;

/** Waits without a limit in Harbor. */
export const ownLimits = {
  preflightMs: 30_000,
  skillsMs: 120_000,
  environmentUploadMs: 300_000,
  stepUploadMs: 300_000,
  stepSetupMs: 600_000,
  /** For looking at the processes of a sandbox. */
  snapshotMs: 15_000,
  /** For an agent to return after it was told to stop; its log is then as complete as it gets. */
  agentGraceMs: 5_000,
  agentStopMs: 15_000,
  logsMs: 120_000,
  /** For the sandbox to stop before its services are read. */
  stopMs: 60_000,
  artifactsMs: 600_000,
  cleanMs: 30_000,
  testsUploadMs: 120_000,
  verifierReadMs: 120_000,
  transferMs: 600_000,
  destroyMs: 60_000,
} as const;

/** Kept for them under a low ceiling. */
const reserves = { collectMs: 5_000, transferMs: 5_000, agentMs: 1_000, startMs: 1_000 } as const;

type MultiplierField =
  | 'agent_timeout_multiplier'
  | 'verifier_timeout_multiplier'
  | 'agent_setup_timeout_multiplier'
  | 'environment_build_timeout_multiplier';

function multiplier(config: TrialConfig, field: MultiplierField): number {
  return config[field] ?? config.timeout_multiplier;
}

/** 0 and absent both mean "not set". */
function seconds(value: number | null): number | null {
  return value === null || value === 0 ? null : value * 1000;
}

export function environmentLimitMs(config: TrialConfig, task: Task): number {
  return (
    task.environment.buildTimeoutMs * multiplier(config, 'environment_build_timeout_multiplier')
  );
}

export function agentSetupLimitMs(config: TrialConfig): number {
  const base = seconds(config.agent.override_setup_timeout_sec) ?? defaultAgentSetupMs;
  return base * multiplier(config, 'agent_setup_timeout_multiplier');
}

/** null = no limit. */
export function agentLimitMs(
  config: TrialConfig,
  task: Task,
  step: TaskStep | null,
): number | null {
  const base =
    seconds(config.agent.override_timeout_sec) ?? step?.agent.timeoutMs ?? task.agent.timeoutMs;
  const capped = Math.min(base ?? Infinity, seconds(config.agent.max_timeout_sec) ?? Infinity);
  if (!Number.isFinite(capped)) return null;
  return capped * multiplier(config, 'agent_timeout_multiplier');
}

export function verifierLimitMs(config: TrialConfig, task: Task, step: TaskStep | null): number {
  const base = seconds(config.verifier.override_timeout_sec) ?? (step ?? task).verifier.timeoutMs;
  const capped = Math.min(base, seconds(config.verifier.max_timeout_sec) ?? Infinity);
  return capped * multiplier(config, 'verifier_timeout_multiplier');
}

/** Longest time that the health check's own rules allow, and a little. */
export function healthcheckLimitMs(check: Healthcheck): number {
  const duringStart = check.startPeriodMs + check.startIntervalMs + check.timeoutMs;
  return duringStart + check.retries * (check.timeoutMs + check.intervalMs) + 5_000;
}

function hooksLimitMs(hooks: readonly CollectHook[]): number {
  return hooks.reduce((sum, hook) => sum + hook.timeoutMs + 1_000, 1_000);
}

/** The spans of a trial, in the order of its stages. */
export function trialSpans(config: TrialConfig, task: Task): Span {
  const rounds = task.steps.length === 0 ? [null] : task.steps;
  return group('trial', [
    group('start', [
      leaf('preflight', ownLimits.preflightMs, reserves.startMs),
      leaf('environment', environmentLimitMs(config, task), reserves.startMs),
      leaf('upload', ownLimits.environmentUploadMs, reserves.startMs),
      leaf(
        'healthcheck',
        task.environment.healthcheck === null
          ? 1
          : healthcheckLimitMs(task.environment.healthcheck),
        reserves.startMs,
      ),
      leaf('skills', ownLimits.skillsMs, reserves.startMs),
      leaf('agent-setup', agentSetupLimitMs(config), reserves.startMs),
    ]),
    ...rounds.map((step, index) => roundSpans(config, task, step, index)),
    leaf('cleanup', ownLimits.destroyMs),
  ]);
}

/** Name of the span of a step; a single-step task has one round. */
export function roundName(index: number): string {
  return `round-${index}`;
}

function roundSpans(config: TrialConfig, task: Task, step: TaskStep | null, index: number): Span {
  const verifier = (step ?? task).verifier;
  const hooks = [...task.verifier.collect, ...(step?.verifier.collect ?? [])];
  const artifacts = [...task.artifacts, ...config.artifacts, ...(step?.artifacts ?? [])];
  const hasServices = [...hooks, ...artifacts].some(({ service }) => service !== null);
  const agentMs = agentLimitMs(config, task, step);
  return group(roundName(index), [
    group('prepare', [
      leaf('first-snapshot', ownLimits.snapshotMs, reserves.startMs),
      leaf('upload', ownLimits.stepUploadMs, reserves.startMs),
      leaf('setup', ownLimits.stepSetupMs, reserves.startMs),
      leaf(
        'healthcheck',
        step?.healthcheck == null ? 1 : healthcheckLimitMs(step.healthcheck),
        reserves.startMs,
      ),
      leaf('last-snapshot', ownLimits.snapshotMs, reserves.startMs),
    ]),
    group('agent', [leaf('run', agentMs, reserves.agentMs), leaf('grace', ownLimits.agentGraceMs)]),
    leaf('agent-stop', ownLimits.agentStopMs),
    group('collect', [
      leaf('logs', ownLimits.logsMs, reserves.collectMs),
      leaf('hooks', hooksLimitMs(hooks), reserves.collectMs),
      leaf('artifacts', ownLimits.artifactsMs, reserves.collectMs),
      ...(hasServices
        ? [
            leaf('stop', ownLimits.stopMs, reserves.collectMs),
            leaf('service-hooks', hooksLimitMs(hooks), reserves.collectMs),
            leaf('service-artifacts', ownLimits.artifactsMs, reserves.collectMs),
          ]
        : []),
    ]),
    group('verifier', [
      ...(verifier.mode === 'separate'
        ? [
            leaf('environment', environmentLimitMs(config, task), reserves.startMs),
            leaf('transfer', ownLimits.transferMs, reserves.transferMs),
          ]
        : []),
      leaf('clean', ownLimits.cleanMs, reserves.transferMs),
      leaf('tests', ownLimits.testsUploadMs, reserves.transferMs),
      leaf('script', verifierLimitMs(config, task, step)),
      leaf('read', ownLimits.verifierReadMs, reserves.transferMs),
    ]),
  ]);
}
