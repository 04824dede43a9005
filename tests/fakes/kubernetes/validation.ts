/** What an API server refuses about a pod or a policy of ours, in its own words. */
import type { ApiObject } from './object-store.ts';

const dnsLabel = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const labelValue = /^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/;
const qualifiedName =
  /^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const quantity = /^\d+(\.\d+)?(m|k|Ki|M|Mi|G|Gi)?$/;
const cidr = /^[0-9a-f.:]+\/\d{1,3}$/;

export interface PodSpec {
  readonly containers: readonly ContainerSpec[];
  readonly activeDeadlineSeconds?: number;
  readonly terminationGracePeriodSeconds?: number;
  readonly securityContext?: { readonly runAsUser?: number };
}

export interface ContainerSpec {
  readonly name: string;
  readonly image: string;
  readonly command?: readonly string[];
  readonly workingDir?: string;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly resources?: {
    readonly limits?: Readonly<Record<string, string>>;
    readonly requests?: Readonly<Record<string, string>>;
  };
}

export interface PolicySpec {
  readonly podSelector: { readonly matchLabels?: Readonly<Record<string, string>> };
  readonly policyTypes?: readonly string[];
  readonly egress?: readonly {
    readonly to?: readonly { readonly ipBlock?: { readonly cidr: string } }[];
  }[];
}

/** The problems of an object, a sentence each. */
export function problemsOf(object: ApiObject): readonly string[] {
  const { name, labels = {}, annotations = {} } = object.metadata;
  return [
    ...(dnsLabel.test(name)
      ? []
      : [`metadata.name: Invalid value: "${name}": a lowercase RFC 1123 label`]),
    ...Object.entries(labels).flatMap(([key, value]) => [
      ...(qualifiedName.test(key) ? [] : [`metadata.labels: Invalid value: "${key}"`]),
      ...(labelValue.test(value) ? [] : [`metadata.labels: Invalid value: "${value}"`]),
    ]),
    ...Object.keys(annotations).flatMap((key) =>
      qualifiedName.test(key) ? [] : [`metadata.annotations: Invalid value: "${key}"`],
    ),
    ...(object.kind === 'Pod' ? podProblems(object['spec'] as PodSpec | undefined) : []),
    ...(object.kind === 'NetworkPolicy'
      ? policyProblems(object['spec'] as PolicySpec | undefined)
      : []),
  ];
}

function podProblems(spec: PodSpec | undefined): readonly string[] {
  const container = spec?.containers[0];
  if (container === undefined) return ['spec.containers: Required value'];
  const { limits = {}, requests = {} } = container.resources ?? {};
  const seconds = spec?.activeDeadlineSeconds ?? 1;
  const amounts = [...Object.values(limits), ...Object.values(requests)];
  return [
    ...(container.image === '' ? ['spec.containers[0].image: Required value'] : []),
    ...(container.env ?? []).flatMap(({ name }) =>
      /^[ -<>-~]+$/.test(name) ? [] : [`spec.containers[0].env: Invalid value: "${name}"`],
    ),
    ...amounts.flatMap((amount) =>
      quantity.test(amount) ? [] : [`spec.containers[0].resources: Invalid value: "${amount}"`],
    ),
    ...(!(seconds >= 1 && seconds < 2 ** 31)
      ? ['spec.activeDeadlineSeconds: must be between 1 and 2147483647']
      : []),
  ];
}

function policyProblems(spec: PolicySpec | undefined): readonly string[] {
  const blocks = (spec?.egress ?? []).flatMap(({ to }) => to ?? []);
  return blocks.flatMap(({ ipBlock }) =>
    ipBlock === undefined || cidr.test(ipBlock.cidr)
      ? []
      : [`spec.egress: Invalid value: "${ipBlock.cidr}"`],
  );
}
