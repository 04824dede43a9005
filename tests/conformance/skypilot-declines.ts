/** What sandboxes of SkyPilot do not offer; the same for the fake and for the real platform. */
export const skypilotDeclines: readonly string[] = [
  ...['compose', 'pidsLimit', 'diskQuota', 'gpus', 'tpus', 'allowlist', 'windows'],
  ...['dynamicNetworkPolicy', 'hostEndpoint', 'layers'],
  // This host does not see the processes of a cluster.
  ...['inspect.waits', 'inspect.no-sandbox'],
  // In an image of another user nobody becomes root.
  'image.user',
];

/** Besides, where no registry stands between this machine and the cluster. */
export const skypilotImages: readonly string[] = [
  ...['image.build', 'image.entrypoint', 'image.single-flight', 'image.build-fails'],
  ...['image.negative-cache', 'image.absent-base', 'image.build-aborted'],
];
