import { RolloutError } from '../../../core/errors.ts';
import type { AllowedHostKind, NetworkPolicy } from '../../../wire/network-policy.ts';
import type { EnvironmentSpec } from '../../environment.ts';
import { labelKeys, podAnnotations, podLabels, podName } from '../pods/names.ts';

/** What an entry of an allow list may be: the API knows no names. */
export const allowedHostKinds: readonly AllowedHostKind[] = [
  'ipv4-address',
  'ipv6-address',
  'ipv4-cidr',
  'ipv6-cidr',
];

/** The NetworkPolicy of a sandbox: nobody reaches it, and it reaches what `policy` says. Its pod's own loopback is nobody's business. */
export function policyManifest(spec: EnvironmentSpec, policy: NetworkPolicy): object {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: {
      name: podName(spec.name),
      labels: podLabels(spec.name, spec.labels),
      annotations: podAnnotations(spec.name, spec.labels),
    },
    spec: {
      podSelector: { matchLabels: { [labelKeys.sandbox]: podName(spec.name) } },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [],
      egress: egress(policy),
    },
  };
}

/** CAPABILITY_UNSUPPORTED names the entry of an allow list that is no address. */
export function refuseHostNames(policy: NetworkPolicy): void {
  if (policy.mode !== 'allowlist') return;
  const name = policy.hosts.find(({ kind }) => !allowedHostKinds.includes(kind));
  if (name === undefined) return;
  throw new RolloutError(
    'CAPABILITY_UNSUPPORTED',
    `a cluster allows addresses and ranges, not the host name ${name.value}`,
    {
      phase: 'environment',
      field: 'environment.allowed_hosts',
      remedy: 'List addresses or CIDR blocks, or run this task with --env docker.',
    },
  );
}

function egress(policy: NetworkPolicy): readonly object[] {
  if (policy.mode === 'public') return [{}];
  if (policy.mode === 'no-network' || policy.hosts.length === 0) return [];
  const cidr = (value: string): string =>
    value.includes('/') ? value : `${value}/${value.includes(':') ? 128 : 32}`;
  return [{ to: policy.hosts.map(({ value }) => ({ ipBlock: { cidr: cidr(value) } })) }];
}
