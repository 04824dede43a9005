/**
 * The spill of a trajectory: NDJSON beside the document, first a line with what is known before the steps, then one line per step. Lines are ASCII
 * and are only appended, so that a killed process leaves a readable file whose last line may be torn.
 */
import { open, type FileHandle } from 'node:fs/promises';
import { fileChunks } from '../core/file-chunks.ts';
import { RolloutError } from '../core/errors.ts';
import type { AtifStep, AtifTrajectory } from '../wire/atif/atif.ts';
import { maxPartBytes } from './document-parts.ts';
import type { TrajectoryHead } from './trajectory-log.ts';

const spillSuffix = '.steps.ndjson';
const chunkBytes = 256 * 1024;
const lineFeed = 0x0a;

/** `trajectory.json` → `trajectory.steps.ndjson`, in the same folder. */
export function spillFileOf(document: string): string {
  return document.replace(/\.json$/, '') + spillSuffix;
}

export function isSpillFile(file: string): boolean {
  return file.endsWith(spillSuffix);
}

/** The first line of a spill. */
export interface SpillHead {
  readonly slipway_spill: 1;
  readonly head: TrajectoryHead;
}

/** Lines of a spill, parsed: the head, then steps. A torn last line is left out; TRAJECTORY_INVALID for one in the middle. */
export async function* readSpill(file: string): AsyncGenerator<SpillHead | AtifStep> {
  await using handle = await open(file, 'r');
  let torn: number | null = null;
  let count = 0;
  for await (const line of spillLines(file, handle)) {
    count += 1;
    if (torn !== null) throw unreadable(file, `line ${torn} is not JSON`);
    let parsed: unknown;
    try {
      parsed = JSON.parse(line.toString('utf8'));
    } catch {
      torn = count;
      continue;
    }
    if (typeof parsed !== 'object' || parsed === null)
      throw unreadable(file, `line ${count} is no object`);
    if (count === 1 && !('slipway_spill' in parsed)) throw unreadable(file, 'it has no head');
    yield parsed as SpillHead | AtifStep; // the writer of the line is ours, and the head says so
  }
}

/**
 * Lines with their line break, from the beginning of the file; the last one may have none. Node's own reader of lines ends the whole process over one
 * that is too long for a string, and anybody may have written the file: TRAJECTORY_INVALID for a line over {@link maxPartBytes}.
 */
export async function* spillLines(file: string, handle: FileHandle): AsyncGenerator<Buffer> {
  let earlier: Buffer[] = [];
  let earlierBytes = 0;
  for await (const chunk of fileChunks(handle, chunkBytes)) {
    let from = 0;
    for (let end = chunk.indexOf(lineFeed); end !== -1; end = chunk.indexOf(lineFeed, from)) {
      yield Buffer.concat([...earlier, chunk.subarray(from, end + 1)]);
      earlier = [];
      earlierBytes = 0;
      from = end + 1;
    }
    earlier.push(Buffer.from(chunk.subarray(from)));
    earlierBytes += chunk.length - from;
    if (earlierBytes > maxPartBytes) throw unreadable(file, 'a line in it is too long');
  }
  if (earlierBytes > 0) yield Buffer.concat(earlier);
}

/** What a killed process had written, as a document; its totals are not known. TRAJECTORY_INVALID when there is no step. */
export async function recoverTrajectory(spill: string): Promise<AtifTrajectory> {
  let head: TrajectoryHead | null = null;
  const steps: AtifStep[] = [];
  for await (const line of readSpill(spill)) {
    if ('slipway_spill' in line) head = line.head;
    else steps.push(line);
  }
  if (head === null || steps.length === 0) throw unreadable(spill, 'it holds no step');
  return {
    ...headFields(head),
    steps,
    ...(head.notes === null ? {} : { notes: head.notes }),
    ...(head.extra === null ? {} : { extra: head.extra }),
  };
}

/** The fields of a document that stand before its steps. */
export function headFields(head: TrajectoryHead): Omit<AtifTrajectory, 'steps'> {
  return {
    schema_version: 'ATIF-v1.7',
    session_id: head.sessionId,
    ...(head.trajectoryId === null ? {} : { trajectory_id: head.trajectoryId }),
    agent: head.agent,
  };
}

function unreadable(file: string, what: string): RolloutError {
  return new RolloutError(
    'TRAJECTORY_INVALID',
    `${file} cannot be read as spilled steps: ${what}`,
    {
      phase: 'collect',
      field: file,
    },
  );
}
