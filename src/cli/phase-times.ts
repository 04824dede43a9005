import type { PhaseTimes } from '../wire/harbor/slipway-record.ts';

/** The phases that tables show, in the order of a trial. */
export const phaseColumns = ['image', 'boot', 'setup', 'agent', 'verifier', 'total'] as const;

/** Milliseconds per column of {@link phaseColumns}; null where the phase did not run. */
export function phaseTimesOf(times: PhaseTimes): (number | null)[] {
  return [
    times.image_ms,
    times.boot_ms,
    times.agent_setup_ms,
    times.agent_ms,
    times.verifier_ms,
    times.total_ms,
  ].map((ms) => ms ?? null);
}
