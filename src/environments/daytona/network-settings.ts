import { RolloutError } from '../../core/errors.ts';
import type { NetworkPolicy } from '../../wire/network-policy.ts';

/** The three fields of the service; all of them always, so that a switch leaves nothing of what was before. */
export interface NetworkSettings {
  readonly networkBlockAll: boolean;
  /** Comma-separated IPv4 CIDR blocks. */
  readonly networkAllowList: string;
  /** Comma-separated host names, also `*.suffix`. */
  readonly domainAllowList: string;
}

/**
 * A policy in the service's words. CAPABILITY_UNSUPPORTED names what the service has no words for: IPv6, and names together with
 * addresses.
 */
export function networkSettings(policy: NetworkPolicy): NetworkSettings {
  if (policy.mode === 'public') return settings({ networkBlockAll: false });
  const hosts = policy.mode === 'allowlist' ? policy.hosts : [];
  if (hosts.length === 0) return settings({ networkBlockAll: true });
  const addresses = new Set<string>();
  const names = new Set<string>();
  for (const { kind, value } of hosts)
    switch (kind) {
      case 'hostname':
      case 'wildcard-hostname':
        names.add(value);
        break;
      case 'ipv4-address':
        addresses.add(`${value}/32`);
        break;
      case 'ipv4-cidr':
        addresses.add(value);
        break;
      case 'ipv6-address':
      case 'ipv6-cidr':
        throw unsupported(`allow lists of Daytona hold no IPv6 (${value})`);
    }
  if (addresses.size > 0 && names.size > 0)
    throw unsupported('allow lists of Daytona hold names or addresses, not both');
  return settings({
    networkAllowList: [...addresses].join(','),
    domainAllowList: [...names].join(','),
  });
}

function settings(some: Partial<NetworkSettings>): NetworkSettings {
  return { networkBlockAll: false, networkAllowList: '', domainAllowList: '', ...some };
}

function unsupported(message: string): RolloutError {
  return new RolloutError('CAPABILITY_UNSUPPORTED', message, {
    phase: 'environment',
    field: 'environment.allowed_hosts',
    remedy: 'Give only host names or only IPv4 addresses, or use another environment.',
  });
}
