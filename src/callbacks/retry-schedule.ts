/** When a callback that was not taken is sent again: a first round of quick attempts, then on and on with longer pauses. */

/** Attempts of the first round; while it lasts the rollout's place is held. */
export const firstRoundAttempts = 5;
const roundPausesMs = { first: 500, longest: 8_000 } as const;
const laterPausesMs = { first: 15_000, longest: 300_000 } as const;
/** A part of the pause is added at random, so that the callbacks of an outage do not come back in one wave. */
const jitter = 0.25;

export interface PauseReasons {
  /** Attempts that failed since the delivery was taken over; at least 1. */
  readonly failed: number;
  /** What the receiver asked for; null = nothing. */
  readonly retryAfterMs: number | null;
  /** From 0 to 1. */
  readonly random: number;
}

export function pauseMs({ failed, retryAfterMs, random }: PauseReasons): number {
  const isFirstRound = failed < firstRoundAttempts;
  const { first, longest } = isFirstRound ? roundPausesMs : laterPausesMs;
  const doublings = isFirstRound ? failed - 1 : failed - firstRoundAttempts;
  const pause = Math.min(first * 2 ** Math.min(doublings, 30), longest);
  const asked = Math.min(retryAfterMs ?? 0, laterPausesMs.longest);
  return Math.max(pause, asked) * (1 + jitter * random);
}

/** Reads `Retry-After`: seconds or a date; null = neither. */
export function retryAfterMs(header: string | undefined, now: Date): number | null {
  if (header === undefined || header.trim() === '') return null;
  const seconds = Number(header);
  if (Number.isFinite(seconds)) return Math.max(seconds, 0) * 1_000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? null : Math.max(date - now.getTime(), 0);
}
