/**
 * `events.jsonl`. A line counts when its line end is on the disk; what stands after the last line end is the record of a process that died while it wrote
 * and is cut off. A whole line that cannot be read is damage, and refused.
 */
import { open, type FileHandle } from 'node:fs/promises';
import { attribute, RolloutError } from '../../core/errors.ts';
import { AppendLog } from '../../store/file/append-log.ts';
import { evalEvent, type EvalEvent } from './eval-events.ts';

export class EvalJournal implements AsyncDisposable {
  readonly #log: AppendLog;
  readonly #path: string;

  private constructor(path: string, log: AppendLog) {
    this.#path = path;
    this.#log = log;
  }

  /** Made when it is not there; `accept` gets what it holds. JOB_UNREADABLE names the line that is none. */
  static async open(path: string, accept: (event: EvalEvent) => void): Promise<EvalJournal> {
    const file = await open(path, 'a+', 0o600);
    try {
      const sizeBytes = await readEvents(file, path, accept);
      await file.truncate(sizeBytes);
      await file.close();
      // A file that was opened for appending ignores where it is told to write.
      return new EvalJournal(path, new AppendLog(await open(path, 'r+'), sizeBytes));
    } catch (error) {
      await file.close().catch(() => undefined);
      throw attribute(error, 'JOB_UNREADABLE', 'queue', path);
    }
  }

  /** Resolves when the event is on the disk. */
  async append(event: EvalEvent): Promise<void> {
    try {
      await this.#log.append(`${JSON.stringify(event)}\n`);
    } catch (error) {
      throw attribute(error, 'JOURNAL_FAILED', 'queue', `cannot write ${this.#path}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#log.close();
  }
}

async function readEvents(
  file: FileHandle,
  path: string,
  accept: (event: EvalEvent) => void,
): Promise<number> {
  let rest = '';
  let line = 0;
  let sizeBytes = 0;
  for await (const chunk of file.createReadStream({
    start: 0,
    autoClose: false,
    encoding: 'utf8',
  })) {
    const lines = (rest + (chunk as string)).split('\n');
    rest = lines.pop() ?? '';
    for (const text of lines) {
      line += 1;
      sizeBytes += Buffer.byteLength(text) + 1;
      accept(parseEvent(text, `${path} line ${line}`));
    }
  }
  return sizeBytes;
}

function parseEvent(text: string, place: string): EvalEvent {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = null;
  }
  const event = evalEvent.safeParse(value);
  if (event.success) return event.data;
  throw new RolloutError('JOB_UNREADABLE', `${place} is no event of an evaluation`, {
    phase: 'queue',
    field: 'events.jsonl',
    remedy: 'Restore the file from a copy, or begin anew: --fresh.',
  });
}
