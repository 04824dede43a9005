import { FakeProvider } from '../fakes/environment/fake-provider.ts';
import type { FakeMachine } from '../fakes/environment/fake-machine.ts';
import type { ConformanceAdapter } from './environment/adapter.ts';

export function fakeAdapter(machine: FakeMachine): ConformanceAdapter {
  return {
    kind: 'fake',
    provider: () => new FakeProvider(machine),
    image: 'debian:bookworm-slim',
    declines: [
      'diskQuota',
      // There is no kernel of its own below, so nothing to be refused by.
      'isolation.call-unshare-user',
      'isolation.call-keyctl',
      'isolation.call-bpf',
      'isolation.call-mount',
      'isolation.call-reboot',
      'isolation.capabilities',
      'isolation.seccomp',
      'isolation.kernel-knobs',
      // The shell answers when a command is done, and in text.
      'exec.output-as-it-comes',
      'exec.invalid-utf8',
      // Programs of side services are not run.
      'compose.side-service',
    ],
    leftovers: async () => [...machine.sandboxes.keys()],
    processesWith: async (marker) => machine.processesWith(marker),
    probes: {
      fetchDirect: (host, port) => `fake-fetch direct ${host} ${port}`,
      fetchProxied: (host, port) => `fake-fetch proxied ${host} ${port}`,
      fetchTunnelled: (host, port) => `fake-fetch proxied ${host} ${port}`,
      holdMemory: (mebibytes) => `fake-memory ${mebibytes}`,
      burnCpu: (seconds) => `fake-burn ${seconds}`,
      fork: (children) => `fake-fork ${children}`,
      linger: (kind, marker) => `linger ${kind} ${marker}`,
    },
  };
}
