/** Turns the tables of task.toml into the sections of a {@link Task}: seconds become milliseconds, hosts get their kind, modes are resolved. */
import { readAllowedHost, type AllowedHost, type NetworkPolicy } from '../wire/network-policy.ts';
import type { AgentTable } from '../wire/harbor/task/agent-table.ts';
import type { EnvironmentTable } from '../wire/harbor/task/environment-table.ts';
import type { HealthcheckTable } from '../wire/harbor/task/healthcheck.ts';
import type { VerifierTable } from '../wire/harbor/task/verifier-table.ts';
import type {
  AgentSection,
  CollectHook,
  Healthcheck,
  TaskEnvironment,
  TpuRequest,
  VerifierSection,
} from './task.ts';

/** Milliseconds of a number of seconds. Negative limits act as zero, as Harbor's do. */
export function toMs(seconds: number): number {
  return Math.max(0, Math.round(seconds * 1000));
}

export function toEnvironment(table: EnvironmentTable): TaskEnvironment {
  return {
    network: toPolicy(table.network_mode, table.allowed_hosts),
    buildTimeoutMs: toMs(table.build_timeout_sec),
    dockerImage: table.docker_image,
    os: table.os,
    cpus: toLimit(table.cpus),
    memoryMb: toLimit(table.memory_mb),
    storageMb: toLimit(table.storage_mb),
    gpus: toLimit(table.gpus) ?? 0,
    gpuTypes: table.gpu_types,
    tpu: table.tpu === null ? null : toTpu(table.tpu),
    mcpServers: table.mcp_servers,
    env: table.env,
    skillsDir: table.skills_dir,
    healthcheck: toHealthcheck(table.healthcheck),
    workdir: table.workdir,
  };
}

/** Zero and less limit nothing: container runtimes read them so or refuse them. */
function toLimit(value: number | null): number | null {
  return value !== null && value > 0 ? value : null;
}

function toTpu({ type, topology }: { type: string; topology: string }): TpuRequest {
  return { type, topology, chips: topology.split('x').reduce((n, part) => n * Number(part), 1) };
}

export function toHealthcheck(table: HealthcheckTable | null): Healthcheck | null {
  if (table === null) return null;
  return {
    command: table.command,
    intervalMs: toMs(table.interval_sec),
    // Whole seconds, as Harbor counts them; a limit below one second stays what it is.
    timeoutMs: toMs(table.timeout_sec < 1 ? table.timeout_sec : Math.trunc(table.timeout_sec)),
    startPeriodMs: toMs(table.start_period_sec),
    startIntervalMs: toMs(table.start_interval_sec),
    retries: table.retries,
  };
}

export function toAgent(table: AgentTable): AgentSection {
  return {
    timeoutMs: table.timeout_sec === null ? null : toMs(table.timeout_sec),
    user: table.user,
    network: toPhasePolicy(table.network_mode, table.allowed_hosts),
  };
}

/** What a verifier falls back to: a step's to the task's, the task's to shared and `[environment]`. */
export interface VerifierBase {
  readonly mode: VerifierSection['mode'];
  /** The task verifier's own environment table; null = none. */
  readonly table: EnvironmentTable | null;
  readonly environment: EnvironmentTable;
}

export function toVerifier(table: VerifierTable, base: VerifierBase): VerifierSection {
  const mode = table.environment_mode ?? (table.environment === null ? base.mode : 'separate');
  const own = table.environment ?? base.table;
  return {
    timeoutMs: toMs(table.timeout_sec),
    env: table.env,
    user: table.user,
    network: toPhasePolicy(table.network_mode, table.allowed_hosts),
    mode,
    environment: mode === 'separate' ? toEnvironment(own ?? base.environment) : null,
    isEnvironmentInherited: mode === 'separate' && own === null,
    collect: table.collect.map(toCollectHook),
  };
}

function toCollectHook(hook: VerifierTable['collect'][number]): CollectHook {
  return {
    command: hook.command,
    service: hook.service === 'main' ? null : hook.service,
    timeoutMs: toMs(hook.timeout_sec),
    user: hook.user,
  };
}

function toPhasePolicy(
  mode: NetworkPolicy['mode'] | null,
  hosts: readonly string[] | null,
): NetworkPolicy | null {
  return mode === null ? null : toPolicy(mode, hosts);
}

function toPolicy(mode: NetworkPolicy['mode'], hosts: readonly string[] | null): NetworkPolicy {
  if (mode !== 'allowlist') return { mode };
  const parsed = (hosts ?? [])
    .map(readAllowedHost)
    .filter((host): host is AllowedHost => typeof host !== 'string');
  return { mode, hosts: parsed };
}
