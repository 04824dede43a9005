/**
 * Which network policy holds when. The sandbox starts with `environment`; where a phase's policy differs, it is switched right
 * before the phase and back after it. Run-time hosts widen a closed policy; on a public one they change nothing.
 */
import {
  isSamePolicy,
  withExtraHosts,
  type AllowedHost,
  type NetworkPolicy,
} from '../wire/network-policy.ts';
import type { Task, TaskStep } from './task.ts';

export interface NetworkPlan {
  /** Of the agent's sandbox while it is up. */
  readonly environment: NetworkPolicy;
  /** While the agent is set up and runs. */
  readonly agent: NetworkPolicy;
  /** Of the sandbox the verifier runs in: the agent's, or its own while that is up. */
  readonly verifierEnvironment: NetworkPolicy;
  /** While the verifier runs. */
  readonly verifier: NetworkPolicy;
  /** Run-time hosts that were ignored, one sentence each. */
  readonly warnings: readonly string[];
}

export interface NetworkPlanOptions {
  readonly task: Task;
  /** null for a single-step task. */
  readonly step: TaskStep | null;
  /** `environment.extra_allowed_hosts` of the run. */
  readonly environmentHosts: readonly AllowedHost[];
  /** `agent.extra_allowed_hosts` of the run. */
  readonly agentHosts: readonly AllowedHost[];
}

export function resolveNetworkPlan(options: NetworkPlanOptions): NetworkPlan {
  const { task, step, environmentHosts, agentHosts } = options;
  const environment = withExtraHosts(task.environment.network, environmentHosts);
  const agentBase = step?.agent.network ?? task.agent.network ?? environment.policy;
  const agent = withExtraHosts(agentBase, agentHosts);
  const verifierEnvironment = verifierBaseline(options, environment.policy);
  return {
    environment: environment.policy,
    agent: agent.policy,
    verifierEnvironment,
    verifier: step?.verifier.network ?? task.verifier.network ?? verifierEnvironment,
    warnings: [
      ...(environment.isIgnored
        ? ['environment.extra_allowed_hosts: the network is public anyway']
        : []),
      ...(agent.isIgnored ? ['agent.extra_allowed_hosts: the network is public anyway'] : []),
    ],
  };
}

/** Hosts given for the environment also reach an inherited copy of it, never an environment of the verifier's own. */
function verifierBaseline(
  { task, step, environmentHosts }: NetworkPlanOptions,
  environment: NetworkPolicy,
): NetworkPolicy {
  const { environment: own, isEnvironmentInherited } = (step ?? task).verifier;
  if (own === null) return environment;
  return isEnvironmentInherited
    ? withExtraHosts(own.network, environmentHosts).policy
    : own.network;
}

/** The policies that a sandbox started with `baseline` may be switched to later; empty = none, so it needs no dynamic policy. */
export function laterPolicies(
  baseline: NetworkPolicy,
  phases: readonly NetworkPolicy[],
): readonly NetworkPolicy[] {
  return phases.filter(
    (policy, index) =>
      !isSamePolicy(policy, baseline) &&
      phases.findIndex((other) => isSamePolicy(other, policy)) === index,
  );
}
