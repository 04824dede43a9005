import { environmentCases } from './environment/cases/all.ts';

/** What sandboxes of Daytona decline of the suite of environments, on the fake and on the real service. */
export const daytonaDeclines: readonly string[] = [
  ...['compose', 'gpus', 'tpus', 'windows', 'pidsLimit', 'hostEndpoint', 'layers'],
  // Memory and disks are sold by whole GiB; these cases ask for less.
  ...['limits.memory', 'limits.disk'],
  // What waits for what is known to the provider's kernel alone.
  ...['inspect.waits', 'inspect.no-sandbox'],
  // They need the host's endpoint beside an allow list.
  ...['network.endpoint-under-allowlist', 'network.switch-keeps-endpoint'],
];

/** All but the one that asks for half a processor: Daytona sells whole ones, which a loaded host may not give either. */
export const daytonaCases: readonly string[] = environmentCases
  .map(({ id }) => id)
  .filter((id) => id !== 'limits.cpu');
