/** What pods do not offer; the same for the fake and for a real cluster. */
export const kubernetesDeclines: readonly string[] = [
  ...['compose', 'gpus', 'tpus', 'windows', 'build', 'layers', 'hostEndpoint'],
  // Limits of a node, which the API does not set for a pod.
  ...['pidsLimit', 'diskQuota'],
  // Processes are on another machine.
  ...['inspect.waits', 'inspect.no-sandbox'],
  // The gateway's address is given from around the provider.
  ...['network.endpoint-under-allowlist', 'network.switch-keeps-endpoint'],
];
