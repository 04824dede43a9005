import { readdirSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** How long the event loop is held at a time: what else this process does goes on between two slices. */
const sliceMs = 8;
/** A listing with no more news than this is read in one go, at once. */
const fewPids = 32;
const maxListings = 8;

/**
 * What `read` says about each process of the host, in slices of a few milliseconds. It lists the processes again at its end, until a listing
 * brings so little news that all of it is read on the spot: whoever lives at that last listing is in the answer, also a child that was made by a
 * process that has ended meanwhile. `read` answers null for a process that has ended, or is of no interest.
 */
export async function scanProcesses<Row>(
  read: (pid: number) => Row | null,
): Promise<ReadonlyMap<number, Row>> {
  const rows = new Map<number, Row>();
  const seen = new Set<number>();
  let sliceEnd = performance.now() + sliceMs;
  for (let listing = 1; ; listing += 1) {
    const news = allPids().filter((pid) => !seen.has(pid));
    const isLast = news.length <= fewPids || listing === maxListings;
    for (const pid of news) {
      if (!isLast && performance.now() > sliceEnd) {
        await nextTurn();
        sliceEnd = performance.now() + sliceMs;
      }
      seen.add(pid);
      const row = read(pid);
      if (row !== null) rows.set(pid, row);
    }
    if (isLast) return rows;
  }
}

export function allPids(): readonly number[] {
  return readdirSync('/proc').map(Number).filter(Number.isInteger);
}
