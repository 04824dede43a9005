/** What sandboxes of Daytona decline of the suite of environments, on the fake and on the real service. */
export const daytonaDeclines: readonly string[] = [
  ...['compose', 'gpus', 'tpus', 'windows', 'pidsLimit', 'hostEndpoint', 'layers'],
  // Processors are sold whole, memory and disks by GiB; these cases ask for less.
  ...['limits.cpu', 'limits.memory', 'limits.disk'],
  // What waits for what is known to the provider's kernel alone.
  ...['inspect.waits', 'inspect.no-sandbox'],
  // They need the host's endpoint beside an allow list.
  ...['network.endpoint-under-allowlist', 'network.switch-keeps-endpoint'],
];
