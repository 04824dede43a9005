import { closeSync, openSync, writeSync } from 'node:fs';
import { RolloutError, messageOf } from '../../core/errors.ts';
import { exactNumber } from './exact-number.ts';

/** One line of the log: what the engine was asked and what it sampled, number for number. */
export interface RequestLogEntry {
  readonly time: string;
  readonly request_id: string;
  readonly route: string;
  readonly model: string;
  /** When the request ended. */
  readonly weight_version: string;
  /** When its first token was sampled; null = none was. */
  readonly first_weight_version: string | null;
  readonly prompt_ids: readonly number[];
  /** Everything sampled, whether or not it reached the client. */
  readonly output_ids: readonly number[];
  readonly logprobs: readonly number[];
  /** Ids that were handed to the connection. */
  readonly sent_ids: number;
  readonly text: string;
  /** Whether encoding `text` gives `output_ids`, the end token aside. */
  readonly canonical: boolean;
  readonly finish_reason: string | null;
  readonly fault: string | null;
  readonly error: string | null;
  readonly started_ms: number;
  readonly ended_ms: number;
  readonly stream: boolean;
}

export interface RequestLog extends Disposable {
  /** Whoever reads the file after this returns sees the whole line. */
  write(entry: RequestLogEntry): void;
}

/** NDJSON, appended. CONFIG_INVALID when the file cannot be opened. */
export function openRequestLog(file: string): RequestLog {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'a');
  } catch (error) {
    throw new RolloutError('CONFIG_INVALID', `${file}: ${messageOf(error)}`, {
      phase: 'config',
      field: '--log',
      remedy: 'Name a file in a folder that exists and can be written.',
      cause: error,
    });
  }
  let isOpen = true;
  return {
    // Synchronous on purpose: one call of the system is one line, and the answer ends only after it.
    write(entry) {
      if (!isOpen) return;
      const line = Buffer.from(
        `${JSON.stringify({ ...entry, logprobs: entry.logprobs.map(exactNumber) })}\n`,
      );
      for (let sent = 0; sent < line.length;) sent += writeSync(descriptor, line, sent);
    },
    [Symbol.dispose]() {
      if (isOpen) closeSync(descriptor);
      isOpen = false;
    },
  };
}
