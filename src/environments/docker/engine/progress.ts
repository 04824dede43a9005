import type { Readable } from 'node:stream';
import { createInterface } from 'node:readline';
import { progressLine } from './engine-answers.ts';
import { EngineError } from './engine-error.ts';

/**
 * Reads the progress of a pull, build or load to its end. A failure arrives as a line in a stream that began with status 200:
 * it becomes an EngineError. Repeated ticks of one layer are passed on once per change of status.
 */
export async function readProgress(
  stream: Readable,
  onLine: (line: string) => void,
): Promise<void> {
  const statuses = new Map<string, string>();
  let failure: string | null = null;
  for await (const line of createInterface({
    input: stream,
    crlfDelay: Number.POSITIVE_INFINITY,
  })) {
    if (line.trim() === '') continue;
    const entry = progressLine.parse(JSON.parse(line));
    if (entry.error !== undefined) failure ??= entry.error;
    if (entry.stream !== undefined)
      for (const text of entry.stream.split('\n')) if (text.trim() !== '') onLine(text.trimEnd());
    if (entry.status !== undefined && statuses.get(entry.id ?? '') !== entry.status) {
      statuses.set(entry.id ?? '', entry.status);
      onLine(entry.id === undefined ? entry.status : `${entry.id}: ${entry.status}`);
    }
  }
  if (failure !== null) throw new EngineError(500, failure);
}
