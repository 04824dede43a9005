/**
 * The journal of one run is lines of JSON: first `run` (who writes), then `intended`, `created` and `gone` by sandbox name, at
 * last `closed`. A sandbox is open from `intended` until `gone`. Lines are appended and synced, never rewritten, so the only damage that
 * a killed writer can cause is a last line without its newline; anything else that cannot be read is damage from outside.
 */
import { z } from 'zod';
import type { RunOwner, SandboxEntry } from '../sandbox-journal.ts';

const name = z.string().min(1);

const recordSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('run'),
    version: z.literal(1),
    runId: z.string().min(1),
    bootId: z.string(),
    pid: z.int(),
    processStart: z.number(),
  }),
  z.object({
    type: z.literal('intended'),
    name,
    provider: z.string(),
    trial: z.string(),
    intendedAt: z.string(),
  }),
  z.object({ type: z.literal('created'), name }),
  z.object({ type: z.literal('gone'), name }),
  z.object({ type: z.literal('closed') }),
]);

export type JournalRecord = z.infer<typeof recordSchema>;

export interface Replay {
  /** null: the writer was killed before its first record was whole. */
  readonly owner: RunOwner | null;
  readonly open: ReadonlyMap<string, SandboxEntry>;
  readonly isClosed: boolean;
  /** Numbers of the lines that cannot be read, counted from 1; a truncated last line is not among them. */
  readonly damagedLines: readonly number[];
  /** Bytes up to the end of the last whole line: where the next record is to be written. */
  readonly wholeBytes: number;
}

export function encodeRecord(record: JournalRecord): string {
  return `${JSON.stringify(record)}\n`;
}

export function replay(text: string): Replay {
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  const open = new Map<string, SandboxEntry>();
  const damagedLines: number[] = [];
  let owner: RunOwner | null = null;
  let isClosed = false;
  for (const [index, line] of whole.split('\n').slice(0, -1).entries()) {
    const record = parseLine(line);
    if (record === null || (record.type === 'run') !== (index === 0)) {
      damagedLines.push(index + 1);
    } else if (record.type === 'run') {
      const { runId, bootId, pid, processStart } = record;
      owner = { runId, bootId, pid, processStart };
    } else if (record.type === 'closed') isClosed = true;
    else apply(open, record);
  }
  return { owner, open, isClosed, damagedLines, wholeBytes: Buffer.byteLength(whole) };
}

type SandboxRecord = Exclude<JournalRecord, { type: 'run' | 'closed' }>;

/** Follows one record about a sandbox; the writer keeps its own list by it too. */
export function apply(open: Map<string, SandboxEntry>, record: SandboxRecord): void {
  if (record.type === 'gone') open.delete(record.name);
  else if (record.type === 'intended') {
    const { name, provider, trial, intendedAt } = record;
    open.set(name, { name, provider, trial, intendedAt, state: 'intended' });
  } else {
    const entry = open.get(record.name);
    if (entry !== undefined) open.set(record.name, { ...entry, state: 'created' });
  }
}

function parseLine(line: string): JournalRecord | null {
  try {
    const parsed = recordSchema.safeParse(JSON.parse(line));
    return parsed.success ? parsed.data : null;
  } catch {
    return null; // not JSON: reported as damage by its line number
  }
}
