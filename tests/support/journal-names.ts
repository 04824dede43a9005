/** Reads the journals of a state folder from outside, while runs write them. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

interface JournalLine {
  readonly type: string;
  readonly name?: string;
  readonly pid?: number;
}

export interface JournalView {
  /** Intended and not gone. */
  readonly open: readonly string[];
  /** Intended, and neither created nor gone: the create call is on its way. */
  readonly inFlight: readonly string[];
}

/** The journal of the run whose process has this pid; empty when it has none yet. */
export function journalOf(stateDir: string, pid: number): JournalView {
  const lines = journals(stateDir).find(([, [first]]) => first?.pid === pid)?.[1] ?? [];
  const names = (type: string): Set<string> =>
    new Set(lines.filter((line) => line.type === type).map((line) => line.name ?? ''));
  const gone = names('gone');
  const created = names('created');
  const open = [...names('intended')].filter((name) => !gone.has(name));
  return { open, inFlight: open.filter((name) => !created.has(name)) };
}

/** The id of the run whose process has this pid; null when it has no journal yet, as before dead runs are cleaned up. */
export function runIdOf(stateDir: string, pid: number): string | null {
  return journals(stateDir).find(([, [first]]) => first?.pid === pid)?.[0] ?? null;
}

function journals(stateDir: string): readonly (readonly [string, readonly JournalLine[]])[] {
  const runsDir = path.join(stateDir, 'runs');
  let files: string[] = [];
  try {
    files = readdirSync(runsDir).filter((file) => file.endsWith('.ndjson'));
  } catch {
    // the run has not opened its journal yet
  }
  return files.map((file) => {
    let text = '';
    try {
      text = readFileSync(path.join(runsDir, file), 'utf8');
    } catch {
      // another run ended and removed its journal
    }
    const lines = text
      .slice(0, text.lastIndexOf('\n') + 1)
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as JournalLine);
    return [path.basename(file, '.ndjson'), lines] as const;
  });
}
