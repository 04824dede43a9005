import type { ServerFacts } from '../diagnosis.ts';
import type { Finding } from './finding.ts';

/** null = there is room. */
export function diskFinding({ disk, now }: ServerFacts, since: Date | null): Finding | null {
  const isLow = disk !== null && disk.freeBytes < disk.floorBytes;
  if (!isLow && since === null) return null;
  return {
    kind: 'disk-full',
    owner: 'operator',
    waitingOn: 'room on the disk of the data folder',
    since: since ?? now,
    evidence: [
      disk === null
        ? 'a write failed for want of room'
        : `${mebibytes(disk.freeBytes)} of ${mebibytes(disk.totalBytes)} MiB are free; below ${mebibytes(disk.floorBytes)} MiB nothing new is accepted`,
    ],
    remedy: 'Make room, or move the data folder; nothing that was accepted is lost meanwhile.',
  };
}

function mebibytes(bytes: number): number {
  return Math.floor(bytes / 2 ** 20);
}
