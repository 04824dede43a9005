/**
 * One deadline tree per trial. A span is a piece of work with an own limit and a reserve: time that whatever runs before
 * it must leave for it. Spans run in order; the rule at every level is the same:
 *
 *     limit(child) = min(own limit, what is left of the parent − reserves of the later siblings − margin)
 *
 * So a child ends strictly inside its parent, a slow early stage shrinks the agent's time and never the verifier's or the cleanup's,
 * and time that an early stage did not use goes to the later ones. When the reserves themselves do not fit under the ceiling, all
 * are scaled down alike. Time is milliseconds of the trial's own clock, which stands still while the trial queues.
 */

export interface Span {
  readonly name: string;
  /** null = no limit of its own. */
  readonly ownMs: number | null;
  /** At most `ownMs`, more than 0. */
  readonly reserveMs: number;
  readonly children: readonly Span[];
}

export interface Deadline {
  readonly span: Span;
  readonly startMs: number;
  /** Infinity = no limit. */
  readonly endMs: number;
  /** The ceiling leaves less than the own limit. */
  readonly isCut: boolean;
  /** How much of every reserve is kept; 1 unless the ceiling is too low for all. */
  readonly scale: number;
}

/** Share of a parent that stays free behind its last child. */
const marginShare = 0.01;
const maxMarginMs = 50;
/** Composite reserves and limits are larger than the sum of their parts by this factor, which pays for the margins. */
const slack = 1.05;
/** Reserves take at most this much of a ceiling. */
const maxReservedShare = 0.8;
/** Ten years: longer limits are cut to it, so that every end is a date. */
const longestMs = 10 * 366 * 24 * 3_600_000;

export function leaf(name: string, limitMs: number | null, reserveMs?: number): Span {
  const ownMs = limitMs === null ? null : Math.min(limitMs, longestMs);
  const reserve = Math.max(1, Math.min(reserveMs ?? ownMs ?? 1, ownMs ?? Infinity));
  return {
    name,
    ownMs: ownMs === null ? null : Math.max(ownMs, reserve),
    reserveMs: reserve,
    children: [],
  };
}

export function group(name: string, children: readonly Span[]): Span {
  const own = children.reduce((sum, child) => sum + (child.ownMs ?? Infinity), 0);
  const reserve = children.reduce((sum, child) => sum + child.reserveMs, 0);
  return {
    name,
    ownMs: Number.isFinite(own) ? Math.max(own * slack, 1) : null,
    reserveMs: Math.max(reserve * slack, 1),
    children,
  };
}

export function rootDeadline(span: Span, nowMs: number, ceilingMs: number | null): Deadline {
  const own = span.ownMs ?? Infinity;
  const limit = Math.min(own, ceilingMs ?? Infinity);
  return {
    span,
    startMs: nowMs,
    endMs: nowMs + limit,
    isCut: limit < own,
    scale: Math.min(1, (limit * maxReservedShare) / span.reserveMs),
  };
}

/** When the child of this name, starting now, has to end. Children are asked for in order; skipping some is fine. */
export function childDeadline(parent: Deadline, name: string, nowMs: number): Deadline {
  const at = parent.span.children.findIndex((child) => child.name === name);
  const span = parent.span.children[at];
  if (span === undefined) throw new Error(`${parent.span.name} has no part called ${name}`);
  const later = parent.span.children.slice(at + 1);
  const reserved = later.reduce((sum, sibling) => sum + sibling.reserveMs, 0) * parent.scale;
  const margin = Math.min(maxMarginMs, (parent.endMs - parent.startMs) * marginShare);
  const left = Math.max(0, parent.endMs - nowMs - reserved - margin);
  const own = span.ownMs ?? Infinity;
  const limit = Math.min(own, left);
  return {
    span,
    startMs: nowMs,
    endMs: nowMs + limit,
    isCut: limit < own,
    scale: parent.scale,
  };
}

/** Milliseconds that are left; Infinity without a limit. */
export function remainingMs(deadline: Deadline, nowMs: number): number {
  return Math.max(0, deadline.endMs - nowMs);
}
