/** What sandboxes of SkyPilot do not offer; the same for the fake and for the real platform. */
export const skypilotDeclines: readonly string[] = [
  ...['compose', 'pidsLimit', 'diskQuota', 'gpus', 'tpus', 'allowlist', 'windows'],
  ...['dynamicNetworkPolicy', 'hostEndpoint', 'layers'],
  // This host does not see the processes of a cluster.
  ...['inspect.waits', 'inspect.no-sandbox'],
  // No registry stands between this machine and the cluster.
  ...['image.build', 'image.user', 'image.entrypoint', 'image.single-flight'],
  ...['image.build-fails', 'image.negative-cache', 'image.absent-base', 'image.build-aborted'],
];
