/**
 * The server's log: JSON lines in a file that is rotated by size. Lines wait in memory, within a bound, while the ones before are written; a full disk
 * loses lines, never the server, and the log says how many when there is space again. Known secrets are masked, wherever in a line they stand.
 */
import { open, rename, rm, type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import type { Clock } from '../core/clock.ts';
import type { Logger, LogLevel } from '../core/logger.ts';
import { makeFolder } from '../core/make-folder.ts';
import type { SecretMask } from './secret-mask.ts';

const ranks: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };
/** What waits beyond this is lost. */
const waitingBytes = 8 * 1024 * 1024;
const longestLine = 64 * 1024;

export interface ServerLogOptions {
  readonly level: LogLevel;
  readonly clock: Clock;
  readonly mask: SecretMask;
  /** A file that would grow beyond this is renamed to `FILE.1`. Default 64 MiB. */
  readonly maxBytes?: number;
  /** `FILE.1` … `FILE.N`. Default 5. */
  readonly kept?: number;
}

export class ServerLog implements Logger, AsyncDisposable {
  readonly #file: string;
  readonly #options: ServerLogOptions;
  readonly #maxBytes: number;
  readonly #kept: number;
  #waiting: string[] = [];
  #waitingLength = 0;
  #writing: Promise<void> | null = null;
  #handle: FileHandle | null = null;
  #size = 0;
  /** A line was cut by an error: the next one begins on a line of its own. */
  #isMidLine = false;
  #mustReopen = false;
  #isClosed = false;
  #lost = 0;
  #lostUntold = 0;

  /** The file, and its folder, are made with the first line; mode 0600. */
  constructor(file: string, options: ServerLogOptions) {
    this.#file = file;
    this.#options = options;
    this.#maxBytes = options.maxBytes ?? 64 * 1024 * 1024;
    this.#kept = options.kept ?? 5;
  }

  log(level: LogLevel, message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    if (ranks[level] < ranks[this.#options.level]) return;
    if (this.#isClosed || this.#waitingLength > waitingBytes) {
      this.#lose(1);
      return;
    }
    this.#add(this.#line(level, message, fields));
    this.#writing ??= this.#write();
  }

  /** Lines that could not be written since the start. */
  get lost(): number {
    return this.#lost;
  }

  /** Another process renamed the file: go on in a new one. */
  reopen(): void {
    this.#mustReopen = true;
  }

  /** Resolves when what was logged so far is written, or lost. */
  async flush(): Promise<void> {
    while (this.#writing !== null) await this.#writing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.flush();
    const handle = this.#handle;
    this.#handle = null;
    await handle?.close().catch(() => undefined);
  }

  #add(line: string): void {
    this.#waiting.push(line);
    this.#waitingLength += line.length;
  }

  #line(level: LogLevel, message: string, fields: Readonly<Record<string, unknown>>): string {
    const own = { time: this.#options.clock.now().toISOString(), level, message };
    let text: string;
    try {
      text = JSON.stringify({ ...own, ...fields, ...own }, plain);
    } catch {
      // A field that is no plain value must not cost the line.
      text = JSON.stringify({ ...own, unreadableFields: Object.keys(fields) });
    }
    // Masked before it is cut, too: the half of a secret would not be known as one.
    const { mask } = this.#options;
    const line = mask.mask(text);
    if (line.length <= longestLine) return `${line}\n`;
    return `${mask.mask(JSON.stringify({ ...own, cut: line.slice(0, longestLine) }))}\n`;
  }

  async #write(): Promise<void> {
    // Lines of the same moment go out together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const bytes = Buffer.from(this.#waiting.join(''));
      this.#waiting = [];
      this.#waitingLength = 0;
      await this.#append(bytes);
    }
    this.#writing = null;
  }

  async #append(bytes: Buffer): Promise<void> {
    let written = 0;
    try {
      const handle = await this.#ready(bytes.length);
      if (this.#isMidLine) {
        await handle.write('\n');
        this.#isMidLine = false;
      }
      while (written < bytes.length) {
        const { bytesWritten } = await handle.write(bytes, written);
        written += bytesWritten;
        this.#size += bytesWritten;
      }
      this.#tellLosses();
    } catch {
      this.#isMidLine ||= written > 0 && bytes[written - 1] !== newline;
      this.#lose(linesIn(bytes.subarray(written)));
      // It may be the file itself that is gone.
      this.#mustReopen = true;
    }
  }

  /** Only when something could be written: there is space again. */
  #tellLosses(): void {
    const lines = this.#lostUntold;
    if (lines === 0) return;
    this.#lostUntold = 0;
    this.#add(this.#line('warn', 'lines of the log were lost', { lines }));
  }

  async #ready(more: number): Promise<FileHandle> {
    if (this.#mustReopen) await this.#close();
    this.#mustReopen = false;
    let handle = this.#handle ?? (await this.#open());
    if (this.#size > 0 && this.#size + more > this.#maxBytes) {
      await this.#close();
      await this.#rotate();
      handle = await this.#open();
    }
    return handle;
  }

  async #open(): Promise<FileHandle> {
    await makeFolder(path.dirname(this.#file), { mode: 0o700 });
    const handle = await open(this.#file, 'a', 0o600);
    this.#handle = handle;
    this.#size = (await handle.stat()).size;
    return handle;
  }

  async #close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = null;
    await handle?.close();
  }

  async #rotate(): Promise<void> {
    const nth = (index: number): string => (index === 0 ? this.#file : `${this.#file}.${index}`);
    await rm(nth(this.#kept), { force: true });
    for (let index = this.#kept - 1; index >= 0; index -= 1)
      await rename(nth(index), nth(index + 1)).catch((error: unknown) => {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      });
  }

  #lose(lines: number): void {
    this.#lost += lines;
    this.#lostUntold += lines;
  }
}

const newline = 10;

function linesIn(bytes: Buffer): number {
  let lines = 0;
  for (const byte of bytes) if (byte === newline) lines += 1;
  return lines;
}

/** Errors say what they are; their stacks may hold anything. */
function plain(_name: string, value: unknown): unknown {
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  return typeof value === 'bigint' ? value.toString() : value;
}
