/** How long each bench takes at short size on an idle machine of two processors, in seconds, with some air. Together they are less than nine minutes. */
const planned: Readonly<Record<string, number>> = {
  ...{ collector: 55, environments: 70, gateway: 100, native: 80, server: 45, sessions: 40 },
  ...{ terminal: 50, queue: 20, scale: 50, simulation: 10 },
};
const others = 15;

/** What a bench may take; what those before it left over is added. */
export const plannedMs = (bench: string): number => 1_000 * (planned[bench] ?? others);
