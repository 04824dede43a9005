import { readFileSync } from 'node:fs';
import { RolloutError } from '../../core/errors.ts';
import type { EnvironmentSpec } from '../environment.ts';
import type { Machine } from './machine.ts';
import { userNetworkDns } from './network/user-network.ts';
import type { CompiledLocalOptions } from './options.ts';

/** Whether a sandbox gets a network namespace of its own, or shares the host's. CAPABILITY_UNSUPPORTED when neither serves. */
export function planNetwork(
  spec: EnvironmentSpec,
  machine: Machine,
  options: CompiledLocalOptions,
): 'own' | 'host' {
  const policies = [spec.network, ...spec.laterNetworks];
  const isRestricted = policies.some((policy) => policy.mode !== 'public');
  const isPublic = policies.some((policy) => policy.mode === 'public');
  const { abilities } = machine.runtime;
  if (!isRestricted && (options.publicNetwork === 'host' || machine.userNetworkLack !== null))
    return 'host';
  if (!abilities.network && isRestricted)
    throw unsupported(
      'a restricted network',
      `the runtime ${machine.runtime.name} has no network of its own`,
    );
  if (isPublic && machine.userNetworkLack !== null)
    throw unsupported('a network that changes between phases', machine.userNetworkLack);
  return 'own';
}

/** The files of /etc that say who and where a sandbox is. */
export function networkFiles(
  hostname: string,
  network: 'own' | 'host',
): Readonly<Record<'hosts' | 'hostname' | 'resolv.conf', string>> {
  return {
    hosts: [
      '127.0.0.1\tlocalhost',
      '::1\tlocalhost ip6-localhost ip6-loopback',
      'fe00::0\tip6-localnet',
      'ff02::1\tip6-allnodes',
      'ff02::2\tip6-allrouters',
      `127.0.1.1\t${hostname}`,
      '',
    ].join('\n'),
    hostname: `${hostname}\n`,
    'resolv.conf': network === 'own' ? `nameserver ${userNetworkDns}\n` : hostResolver(),
  };
}

function hostResolver(): string {
  try {
    return readFileSync('/etc/resolv.conf', 'utf8');
  } catch {
    return '';
  }
}

function unsupported(what: string, why: string): RolloutError {
  return new RolloutError(
    'CAPABILITY_UNSUPPORTED',
    `this environment cannot give ${what}: ${why}`,
    {
      phase: 'environment',
      field: 'environment.network_mode',
      remedy: 'Install slirp4netns and runc, or use `--env docker`.',
    },
  );
}
