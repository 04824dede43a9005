/** How long something takes, drawn anew each time. Milliseconds. */
export type Law = () => number;

export function always(ms: number): Law {
  return () => ms;
}

export function exponential(meanMs: number, random: () => number): Law {
  return () => -meanMs * Math.log(1 - random());
}

/** Of log-normal times by their mean and the share of deviation and mean: 0.5 is that of most model calls, 1 has a long tail. */
export function logNormal(meanMs: number, variation: number, random: () => number): Law {
  const variance = Math.log(1 + variation * variation);
  const [mu, sigma] = [Math.log(meanMs) - variance / 2, Math.sqrt(variance)];
  return () => {
    const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    return Math.exp(mu + sigma * normal);
  };
}
