import { readFile } from 'node:fs/promises';

/** One row of `json-cases.json` or `xml-cases.json`. The rows agree with the parsers of Harbor 0.22, except where a test says otherwise. */
export interface ReplyCase {
  readonly title: string;
  readonly reply: string;
  /** An infinite duration is written as a text. */
  readonly commands: readonly {
    readonly keystrokes: string;
    readonly durationSec: number | 'Infinity';
  }[];
  readonly isTaskComplete: boolean;
  readonly error: string;
  readonly warnings: readonly string[];
  readonly analysis: string;
  readonly plan: string;
  /** XML only: the reply up to its end tag can be executed although the rest was cut off. */
  readonly salvaged?: boolean;
}

export async function readCases(format: 'json' | 'xml'): Promise<readonly ReplyCase[]> {
  const file = new URL(`${format}-cases.json`, import.meta.url);
  return JSON.parse(await readFile(file, 'utf8')) as ReplyCase[];
}
