import { z } from 'zod';
import { nullable } from '../lax.ts';
import { readAllowedHost } from '../../network-policy.ts';
import type { CrossProblem, PartlyChecked } from './table.ts';

const networkMode = z.enum(['public', 'no-network', 'allowlist']);
export type NetworkMode = z.output<typeof networkMode>;

const allowedHost = z.string().transform((text, context) => {
  const host = readAllowedHost(text);
  if (typeof host !== 'string') return host.value;
  context.addIssue({ code: 'custom', message: host });
  return z.NEVER;
});

/** `network_mode` and `allowed_hosts` as they stand in every table that has them; hosts normalised. */
export const networkFields = {
  network_mode: nullable(networkMode),
  allowed_hosts: nullable(z.array(allowedHost)),
};

/** Rules of `[agent]` and `[verifier]`, which override the policy of the environment for one phase. */
export function phaseNetworkProblems(fields: PartlyChecked): readonly CrossProblem[] {
  const { network_mode: mode, allowed_hosts: hosts } = fields;
  if (Array.isArray(hosts) && mode === null)
    return [
      { path: ['allowed_hosts'], message: 'needs network_mode = "allowlist" in the same table' },
    ];
  return hostsProblems(mode, hosts);
}

/** Hosts only make sense in an allow list. */
export function hostsProblems(mode: unknown, hosts: unknown): readonly CrossProblem[] {
  const isOtherMode = mode === 'public' || mode === 'no-network';
  if (!isOtherMode || !Array.isArray(hosts) || hosts.length === 0) return [];
  return [
    {
      path: ['allowed_hosts'],
      message: `must be empty unless network_mode is "allowlist" (it is "${mode}")`,
    },
  ];
}
